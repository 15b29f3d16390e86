/**
 * Who belongs to the project, and with which role.
 */
import { Role } from "@tropism/api/authorization"
import type { Member } from "@tropism/api/members-api"
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/confirm-dialog.tsx"
import { CloseButton, DialogFrame } from "../parts/dialog-frame.tsx"
import { EmptyState } from "../parts/empty-state.tsx"
import { Failure } from "../parts/failure.tsx"
import { ChoiceField, TextField } from "../parts/form-fields.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { membersQuery } from "../server/settings-queries.ts"
import { FormDialog } from "../parts/form-dialog.tsx"
import { roleChoices } from "./role-words.ts"
import { OnlyAdmins, Row, Rows, SectionHead } from "../parts/rows.tsx"
import { addMember, changeRole, type LoginLink, makeLoginLink, removeMember } from "./settings-acts.ts"
import { ShownOnce } from "../parts/shown-once.tsx"
import { Until } from "../parts/until.tsx"
import { useAct } from "../server/use-act.ts"
import { visibleText } from "../words/visible-text.ts"

export const MembersTab = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const { data, error } = useQuery(membersQuery(project.id))
  const [isAdding, setIsAdding] = useState(false)
  return (
    <>
      <SectionHead lead="People and service accounts with access to this project.">
        {isAdmin ? (
          <Button weight="primary" onClick={() => setIsAdding(true)}>
            Add member
          </Button>
        ) : (
          <OnlyAdmins>Only admins can add and remove members and change roles.</OnlyAdmins>
        )}
      </SectionHead>
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data === undefined && error === null && <Skeleton label="Loading members …" />}
      {data?.items.length === 0 && (
        <EmptyState
          title="No members yet"
          command="npx tropism members add ada --role editor"
          does="adds ada as an editor"
        >
          The server's admin can see every project. Add everyone else here.
        </EmptyState>
      )}
      {data !== undefined && (
        <Rows label="Members" rows={data.items} keyOf={({ userId }) => userId}>
          {(member) => <MemberRow member={member} />}
        </Rows>
      )}
      {typeof data?.nextCursor === "string" && (
        <p className="mt-3 text-xs text-ink-faint">Showing the first {data.items.length}.</p>
      )}
      {isAdding && <AddMember onClose={() => setIsAdding(false)} />}
    </>
  )
}

const AddMember = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const { project } = useConsole()
  const show = useToasts()
  const [userId, setUserId] = useState("")
  const [role, setRole] = useState<Role>("viewer")
  const add = useAct({
    what: "Add member",
    act: (body: { userId: string; role: Role }, key) => addMember(project.id, body, key),
    touches: [[project.id, "members"]],
    onDone: (member) => {
      show({
        tone: "done",
        title: "Member added",
        sentence: `${visibleText(member.userId)} is ${member.role} here from now on.`
      })
      onClose()
    }
  })
  return (
    <FormDialog
      title="Add member"
      verb="Add"
      isBusy={add.isBusy}
      error={add.error}
      pointers={["/userId", "/role"]}
      onSubmit={() => add.run({ userId, role })}
      onClose={onClose}
    >
      <TextField
        label="User id"
        hint="A name, an address, or the subject of your identity provider."
        pointer="/userId"
        error={add.error}
        value={userId}
        onChange={setUserId}
        hasFirstFocus
      />
      <ChoiceField
        label="Role"
        pointer="/role"
        error={add.error}
        value={role}
        choices={roleChoices(Role.literals)}
        onChange={(value) => setRole(value as Role)}
      />
    </FormDialog>
  )
}

type Asking = "remove" | "link"

const MemberRow = ({ member }: { readonly member: Member }): ReactNode => {
  const { project, principal, isAdmin } = useConsole()
  const [asking, setAsking] = useState<Asking>()
  const isMe = member.userId === principal.userId
  const touches = [[project.id, "members"], [project.id, "tokens"], ...(isMe ? [["principal"]] : [])]
  const change = useAct({
    what: `Change the role of ${visibleText(member.userId)}`,
    act: (role: Role) => changeRole(project.id, member.userId, role),
    touches
  })
  const close = () => setAsking(undefined)
  return (
    <Row
      title={
        <>
          <Visible text={member.userId} />
          {isMe && <span className="font-normal text-ink-faint"> (you)</span>}
        </>
      }
      actions={
        <>
          {isAdmin ? (
            <select
              aria-label={`Role of ${visibleText(member.userId)}`}
              value={change.isBusy ? change.given : member.role}
              aria-disabled={change.isBusy}
              onChange={(event) => change.run(event.target.value as Role)}
              className="h-8 rounded-lg border border-line-strong bg-surface px-2 text-xs"
            >
              {Role.literals.map((role) => (
                <option key={role}>{role}</option>
              ))}
            </select>
          ) : (
            <span className="text-xs text-ink-soft">{member.role}</span>
          )}
          {isAdmin && (
            <Button size="small" onClick={() => setAsking("link")}>
              Login link
            </Button>
          )}
          {(isAdmin || isMe) && (
            <Button size="small" onClick={() => setAsking("remove")}>
              {isMe ? "Leave" : "Remove"}
            </Button>
          )}
        </>
      }
      below={change.error !== null && <Refused error={change.error} />}
    >
      Joined <TimeAgo instant={member.createdAt} />
      {member.addedBy !== null && (
        <>
          , added by <Visible text={member.addedBy} />
        </>
      )}
      {asking === "remove" && <RemoveMember member={member} isMe={isMe} touches={touches} onClose={close} />}
      {asking === "link" && <MemberLink member={member} onClose={close} />}
    </Row>
  )
}

const Refused = ({ error }: { readonly error: unknown }): ReactNode => (
  <div className="mt-3">
    <Failure error={error} />
  </div>
)

interface RemoveMemberProps {
  readonly member: Member
  readonly isMe: boolean
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
  readonly onClose: () => void
}

const RemoveMember = ({ member, isMe, touches, onClose }: RemoveMemberProps): ReactNode => {
  const { project } = useConsole()
  const remove = useAct({
    what: isMe ? "Leave project" : `Remove ${visibleText(member.userId)}`,
    act: (userId: string) => removeMember(project.id, userId),
    touches,
    onDone: onClose
  })
  return (
    <ConfirmDialog
      isOpen
      title={isMe ? "Leave this project?" : `Remove ${visibleText(member.userId)}?`}
      verb={isMe ? "Leave" : "Remove"}
      staying={isMe ? "Cancel" : "Keep the member"}
      isBusy={remove.isBusy}
      error={remove.error}
      onConfirm={() => remove.run(member.userId)}
      onClose={onClose}
    >
      {isMe ? "Your" : "Their"} tokens and sessions in this project are revoked immediately. Changes that{" "}
      {isMe ? "you" : "they"} made are kept.
    </ConfirmDialog>
  )
}

const MemberLink = ({
  member,
  onClose
}: {
  readonly member: Member
  readonly onClose: () => void
}): ReactNode => {
  const { project } = useConsole()
  const [link, setLink] = useState<LoginLink>()
  const make = useAct({
    what: "Create login link",
    act: (userId: string, key) => makeLoginLink(project.id, userId, key),
    touches: [],
    onDone: setLink
  })
  const title = `A login link for ${visibleText(member.userId)}`
  const lead = (
    <>
      It signs in one browser as <Visible text={member.userId} />, once, within a day. Do not share it with
      anyone else.
    </>
  )
  if (link !== undefined)
    return (
      <ShownOnce title={title} secrets={[{ label: "the login link", text: link.url }]} onClose={onClose}>
        {lead} It is shown only once; it <Until instant={link.expiresAt} />.
      </ShownOnce>
    )
  return (
    <DialogFrame isOpen title={title} onClose={onClose} isBusy={make.isBusy} returnsFocus>
      <p className="mt-2 text-sm text-ink-soft">{lead}</p>
      {make.error !== null && <Refused error={make.error} />}
      <div className="mt-5 flex justify-end gap-2">
        <CloseButton weight="quiet">Cancel</CloseButton>
        <Button
          weight="primary"
          disabled={make.isBusy}
          data-first-focus
          onClick={() => make.run(member.userId)}
        >
          Create link
        </Button>
      </div>
    </DialogFrame>
  )
}
