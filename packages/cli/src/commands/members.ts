/**
 * `tropism members`: who belongs to a project, with which role, and the link that lets their browser in.
 */
import { Role } from "@tropism/api/authorization"
import { type Member, MemberInput } from "@tropism/api/members-api"
import { UserId } from "@tropism/domain/ids"
import { Clock, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { typed } from "../typed-input.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge, formatWait } from "../terminal/time.ts"

const user = Argument.String("user").pipe(
  Argument.withDescription("The user's id: a name, an address, or the subject of your identity provider"),
  Argument.withSchema(UserId)
)

export const roleFlag = Flag.Literals("role", Role.literals)

const list = Command.make("members", {}, () =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      const { client, params } = access
      const { items } = yield* readPages((query) => client.members.list({ params, query }), Infinity)
      yield* printRecords({
        records: items,
        nothing: `The project has no members yet. Add one with "tropism members add USER --role editor".`,
        columns: [
          { title: "USER", cell: (member) => member.userId },
          { title: "ROLE", cell: (member) => member.role },
          { title: "ADDED BY", cell: (member) => member.addedBy ?? "", paint: () => paint.dim },
          { title: "AGE", align: "right", cell: (member) => formatAge(member.createdAt, now) }
        ]
      })
    })
  )
).pipe(Command.withDescription("List, add, change and remove members of the project"))

const add = Command.make(
  "add",
  { user, role: roleFlag.pipe(Flag.withDescription("Their role in this project")) },
  ({ role, user }) =>
    inProject(({ client, params, project }) =>
      Effect.gen(function* () {
        const payload = yield* typed(MemberInput, { userId: user, role })
        const member = yield* client.members.add({ params, payload })
        yield* printMember(member, `is now a member of "${printable(project.name)}" as ${role}.`)
      })
    )
).pipe(
  Command.withDescription("Add a member to the project"),
  Command.withExamples([
    { command: "tropism members add ada@example.com --role reviewer", description: "Add a reviewer" }
  ])
)

const change = Command.make(
  "change",
  { user, role: roleFlag.pipe(Flag.withDescription("Their new role, effective from their next request")) },
  ({ role, user }) =>
    inProject(({ client, params }) =>
      Effect.flatMap(
        client.members.change({ params: { ...params, userId: user }, payload: { role } }),
        (member) => printMember(member, `is ${role} now.`)
      )
    )
).pipe(Command.withDescription("Change a member's role"))

const remove = Command.make("remove", { user }, ({ user }) =>
  inProject(({ client, params }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      yield* client.members.remove({ params: { ...params, userId: user } })
      yield* printOr(
        { removed: user },
        screen.print(
          `${printable(user)} is no longer a member, and their tokens for this project are revoked.`
        )
      )
    })
  )
).pipe(
  Command.withDescription("Remove a member and revoke their tokens and streams in this project"),
  Command.withShortDescription("Remove a member and revoke their tokens")
)

const invite = Command.make("invite", { user }, ({ user }) =>
  inProject(({ client, params }) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const link = yield* client.members.invite({ params: { ...params, userId: user } })
      yield* printOr(
        link,
        printFacts([
          ["link", link.url],
          ["note", `It signs in one browser as ${user}, once, within ${formatWait(link.expiresAt, now)}.`]
        ])
      )
    })
  )
).pipe(Command.withDescription("Create a one-time login link for a member"))

const printMember = (member: Member, sentence: string) =>
  Effect.flatMap(Screen, (screen) => printOr(member, screen.print(`${printable(member.userId)} ${sentence}`)))

export const membersCommand = list.pipe(Command.withSubcommands([add, change, remove, invite]))
