/**
 * Makes a token, and shows its secret this once.
 */
import { includesRole, Role, roleIn } from "@tropism/api/authorization"
import type { NewToken } from "@tropism/api/members-api"
import { useQuery } from "@tanstack/react-query"
import { Clock, Effect } from "effect"
import { type ReactNode, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { CheckField, ChoiceField, TextField } from "../parts/form-fields.tsx"
import { Visible } from "../parts/visible.tsx"
import { projectsQuery } from "../server/queries.ts"
import { Problem } from "../server/problem.ts"
import type { Failure } from "../server/request.ts"
import { membersQuery } from "../server/settings-queries.ts"
import { FormDialog } from "../parts/form-dialog.tsx"
import { roleChoices } from "./role-words.ts"
import { ShownOnce } from "../parts/shown-once.tsx"
import { addMember, makeToken, type TokenWish } from "./settings-acts.ts"
import { Until } from "../parts/until.tsx"
import { useAct } from "../server/use-act.ts"
import { visibleText } from "../words/visible-text.ts"

const dayMs = 86_400_000

const spans = [
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "a year" },
  { value: "", label: "never" }
] as const

export const MakeToken = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const [made, setMade] = useState<typeof NewToken.Type>()
  return made === undefined ? (
    <TokenForm onMade={setMade} onClose={onClose} />
  ) : (
    <Made token={made} onClose={onClose} />
  )
}

interface TokenFormProps {
  readonly onMade: (token: typeof NewToken.Type) => void
  readonly onClose: () => void
}

/** What is filled in; the instant is reckoned once, when the form is sent first, so that a repeat says the same. */
interface Wish {
  readonly name: string
  readonly role: Role
  readonly userId: string
  readonly days: string
  readonly projectIds: ReadonlyArray<string>
}

const TokenForm = ({ onMade, onClose }: TokenFormProps): ReactNode => {
  const { project, principal, role: ownRole, isAdmin } = useConsole()
  const [openedMs] = useState(() => Effect.runSync(Clock.currentTimeMillis))
  const [wish, setWish] = useState<Wish>({
    name: "",
    role: ownRole,
    userId: principal.userId,
    days: "90",
    projectIds: []
  })
  const change = (changes: Partial<Wish>) => setWish((now) => ({ ...now, ...changes }))
  const { first } = useLettingIn(wish)
  const make = useAct({
    what: "Create token",
    act: (body: TokenWish, key) => Effect.andThen(first(key), makeToken(project.id, body, key)),
    touches: [
      [project.id, "tokens"],
      [project.id, "members"]
    ],
    onDone: onMade
  })
  return (
    <FormDialog
      title="Create token"
      verb="Create"
      isBusy={make.isBusy}
      error={make.error}
      pointers={["/name", "/role", "/userId", "/expiresAt"]}
      onSubmit={() => make.run(toBody(wish, openedMs))}
      onClose={onClose}
    >
      <TextField
        label="Name"
        hint="Its purpose, so you can tell later whether it is still needed."
        pointer="/name"
        error={make.error}
        value={wish.name}
        onChange={(name) => change({ name })}
        hasFirstFocus
      />
      {isAdmin && <OfWhom wish={wish} error={make.error} onChange={(userId) => change({ userId })} />}
      <ChoiceField
        label="Role"
        pointer="/role"
        error={make.error}
        value={wish.role}
        choices={roleChoices(Role.literals.filter((role) => includesRole(ownRole, role)))}
        onChange={(role) => change({ role: role as Role })}
      />
      <ChoiceField
        label="Expires"
        pointer="/expiresAt"
        error={make.error}
        value={wish.days}
        choices={spans}
        onChange={(days) => change({ days })}
      />
      <FurtherProjects chosen={wish.projectIds} onChange={(projectIds) => change({ projectIds })} />
    </FormDialog>
  )
}

interface OfWhomProps {
  readonly wish: Wish
  readonly error: unknown
  readonly onChange: (userId: string) => void
}

/** For admins: whose token it is, and what it takes that it is theirs. */
const OfWhom = ({ wish, error, onChange }: OfWhomProps): ReactNode => {
  const { project, principal } = useConsole()
  const { data } = useQuery(membersQuery(project.id))
  const { isNeeded } = useLettingIn(wish)
  const userIds = [...new Set([principal.userId, ...(data?.items ?? []).map(({ userId }) => userId)])]
  return (
    <>
      <ChoiceField
        label="Owner"
        pointer="/userId"
        error={error}
        value={wish.userId}
        choices={userIds.map((value) => ({
          value,
          label: value === principal.userId ? `${visibleText(value)} (you)` : visibleText(value)
        }))}
        onChange={onChange}
      />
      {isNeeded && (
        <p data-testid="lets-in" className="text-xs text-ink-soft">
          You are not a member of this project yet. Creating a token adds you as an admin.
        </p>
      )}
    </>
  )
}

/** The server's admin comes into every project and is a member of none; whoever has a token is one. */
const useLettingIn = ({ name, userId }: Wish) => {
  const { project, principal, isAdmin } = useConsole()
  const { data } = useQuery({ ...membersQuery(project.id), enabled: isAdmin })
  const isNeeded =
    data !== undefined &&
    userId === principal.userId &&
    data.items.every((member) => member.userId !== userId)
  return {
    isNeeded,
    /** Nobody is let in for a token that is refused for want of a name. */
    first: (key: string): Effect.Effect<unknown, Failure> =>
      isNeeded && name.trim() !== ""
        ? Effect.catchIf(
            addMember(project.id, { userId, role: "admin" }, `${key}-member`),
            // Of many members not all are listed here: whoever is one need not become one.
            (failure) => failure instanceof Problem && failure.status === 409,
            () => Effect.void
          )
        : Effect.void
  }
}

interface FurtherProjectsProps {
  readonly chosen: ReadonlyArray<string>
  readonly onChange: (chosen: ReadonlyArray<string>) => void
}

const FurtherProjects = ({ chosen, onChange }: FurtherProjectsProps): ReactNode => {
  const others = useOtherProjects()
  if (others.length === 0) return null
  return (
    <fieldset className="grid gap-2">
      <legend className="mb-1 text-sm font-medium">Also valid in</legend>
      {others.map(({ id, name }) => (
        <CheckField
          key={id}
          label={visibleText(name)}
          isChecked={chosen.includes(id)}
          onChange={(isChecked) =>
            onChange(isChecked ? [...chosen, id] : chosen.filter((other) => other !== id))
          }
        />
      ))}
    </fieldset>
  )
}

/** Projects that the token could reach as well; many are named at the command line. */
const useOtherProjects = () => {
  const { project, principal } = useConsole()
  const { data } = useQuery(projectsQuery)
  const others = (data?.items ?? []).filter(
    ({ id }) => id !== project.id && roleIn(principal, id) !== undefined
  )
  return principal.projectIds === null ? [] : others.slice(0, 10)
}

const toBody = ({ days, name, projectIds, role, userId }: Wish, openedMs: number): TokenWish => ({
  name,
  role,
  userId,
  expiresAt: days === "" ? null : new Date(openedMs + Number(days) * dayMs).toISOString(),
  projectIds: projectIds.length === 0 ? null : projectIds
})

interface MadeProps {
  readonly token: typeof NewToken.Type
  readonly onClose: () => void
}

const Made = ({ token, onClose }: MadeProps): ReactNode => (
  <ShownOnce title="Token created" secrets={[{ label: "the token", text: token.token }]} onClose={onClose}>
    <Visible text={token.name ?? ""} />: {token.role}, of <Visible text={token.userId} />,{" "}
    <Until instant={token.expiresAt} />. Copy it now: it is not shown again.
  </ShownOnce>
)
