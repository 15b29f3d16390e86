/**
 * What a person may do with a conversation: give it another title, take it along, delete it.
 */
import type { Conversation } from "@tropism/domain/conversation"
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { call, inProject } from "../server/request.ts"
import { useAct } from "../server/use-act.ts"

type Open = "rename" | "delete" | undefined

export const ConversationActions = ({ conversation }: { readonly conversation: Conversation }): ReactNode => {
  const { project, canAnswer } = useConsole()
  const [open, setOpen] = useState<Open>()
  const path = inProject(project.id, `conversations/${encodeURIComponent(conversation.id)}`)
  const close = () => setOpen(undefined)
  return (
    <>
      <a
        href={`${path}/export`}
        download={`conversation-${conversation.id}.json`}
        className="inline-flex h-8 items-center rounded-lg border border-line-strong bg-surface px-2.5 text-xs font-medium hover:bg-sunken"
      >
        Export
      </a>
      {canAnswer && (
        <>
          <Button size="small" onClick={() => setOpen("rename")}>
            Rename
          </Button>
          <Button size="small" onClick={() => setOpen("delete")}>
            Delete
          </Button>
          {open === "rename" && <RenameDialog path={path} title={conversation.title} onClose={close} />}
          <DeleteDialog path={path} isOpen={open === "delete"} onClose={close} />
        </>
      )}
    </>
  )
}

interface RenameDialogProps {
  readonly path: string
  readonly title: string
  readonly onClose: () => void
}

const RenameDialog = ({ path, title, onClose }: RenameDialogProps): ReactNode => {
  const { project } = useConsole()
  const [text, setText] = useState(title)
  const rename = useAct({
    what: "Rename conversation",
    act: (wanted: string) => call<Conversation>(path, { method: "PATCH", body: { title: wanted } }),
    touches: [[project.id, "conversations"]],
    onDone: onClose
  })
  return (
    <FormDialog
      title="Rename conversation"
      verb="Save"
      isBusy={rename.isBusy}
      error={rename.error}
      pointers={["/title"]}
      onSubmit={() => rename.run(text.trim())}
      onClose={onClose}
    >
      <TextField
        label="Title"
        value={text}
        onChange={setText}
        isRequired
        hasFirstFocus
        pointer="/title"
        error={rename.error}
      />
    </FormDialog>
  )
}

interface DeleteDialogProps {
  readonly path: string
  readonly isOpen: boolean
  readonly onClose: () => void
}

const DeleteDialog = ({ path, isOpen, onClose }: DeleteDialogProps): ReactNode => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  const navigate = useNavigate()
  const remove = useAct({
    what: "Delete conversation",
    act: () => call<null>(path, { method: "DELETE" }),
    // What is on the page is gone: the page is left before its list is read again.
    touches: [],
    onDone: () => {
      onClose()
      navigate({ to: "/chat" })
      queryClient.invalidateQueries({ queryKey: [project.id, "conversations"], refetchType: "active" })
    }
  })
  return (
    <ConfirmDialog
      isOpen={isOpen}
      title="Delete this conversation?"
      verb="Delete it"
      staying="Keep it"
      isBusy={remove.isBusy}
      error={remove.error}
      onConfirm={() => remove.run(null)}
      onClose={onClose}
    >
      The conversation is removed and cannot be continued. The agent's changes and runs are kept.
    </ConfirmDialog>
  )
}
