/**
 * What a person may do with a conversation: give it another title, take it along, delete it.
 */
import type { Conversation } from "@tropism/domain/conversation"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { DialogFrame } from "../parts/dialog-frame.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useFaultFocus } from "../parts/use-fault-focus.ts"
import { call, inProject } from "../server/request.ts"

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
          <DialogFrame
            isOpen={open === "rename"}
            title="Rename the conversation"
            onClose={close}
            returnsFocus
          >
            {open === "rename" && <RenameForm path={path} title={conversation.title} onDone={close} />}
          </DialogFrame>
          <DeleteDialog path={path} isOpen={open === "delete"} onClose={close} />
        </>
      )}
    </>
  )
}

interface RenameFormProps {
  readonly path: string
  readonly title: string
  readonly onDone: () => void
}

const RenameForm = ({ path, title, onDone }: RenameFormProps): ReactNode => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  const [text, setText] = useState(title)
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      Effect.runPromise(call<Conversation>(path, { method: "PATCH", body: { title: text.trim() } })),
    onSuccess: () => {
      queryClient.invalidateQueries({ queryKey: [project.id, "conversations"] })
      onDone()
    }
  })
  return (
    <form
      ref={useFaultFocus(error)}
      className="mt-3 grid gap-4"
      onSubmit={(event) => {
        event.preventDefault()
        mutate()
      }}
    >
      {error !== null && <Failure error={error} />}
      <TextField
        label="Title"
        value={text}
        onChange={setText}
        isRequired
        hasFirstFocus
        pointer="/title"
        error={error}
      />
      <div className="flex justify-end">
        <Button type="submit" weight="primary" disabled={isPending}>
          Save
        </Button>
      </div>
    </form>
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
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => Effect.runPromise(call<null>(path, { method: "DELETE" })),
    onSuccess: () => {
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
      isBusy={isPending}
      error={error}
      onConfirm={() => mutate()}
      onClose={onClose}
    >
      It leaves every list and nobody can go on with it. What its agent did stays on record.
    </ConfirmDialog>
  )
}
