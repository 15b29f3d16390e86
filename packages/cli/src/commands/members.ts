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
        nothing: `The project has no member yet. "tropism members add USER --role editor" lets somebody in.`,
        columns: [
          { title: "USER", cell: (member) => member.userId },
          { title: "ROLE", cell: (member) => member.role },
          { title: "ADDED BY", cell: (member) => member.addedBy ?? "", paint: () => paint.dim },
          { title: "AGE", align: "right", cell: (member) => formatAge(member.createdAt, now) }
        ]
      })
    })
  )
).pipe(Command.withDescription("List the members of the project; let people and programs in"))

const add = Command.make(
  "add",
  { user, role: roleFlag.pipe(Flag.withDescription("What they may do in this project")) },
  ({ role, user }) =>
    inProject(({ client, params, project }) =>
      Effect.gen(function* () {
        const payload = yield* typed(MemberInput, { userId: user, role })
        const member = yield* client.members.add({ params, payload })
        yield* printMember(member, `is a member of "${printable(project.name)}" now, as ${role}.`)
      })
    )
).pipe(
  Command.withDescription("Let somebody into the project"),
  Command.withExamples([
    { command: "tropism members add ada@example.com --role reviewer", description: "Let Ada decide" }
  ])
)

const change = Command.make(
  "change",
  { user, role: roleFlag.pipe(Flag.withDescription("Their new role; it holds from their next request on")) },
  ({ role, user }) =>
    inProject(({ client, params }) =>
      Effect.flatMap(
        client.members.change({ params: { ...params, userId: user }, payload: { role } }),
        (member) => printMember(member, `is ${role} now.`)
      )
    )
).pipe(Command.withDescription("Give a member another role"))

const remove = Command.make("remove", { user }, ({ user }) =>
  inProject(({ client, params }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      yield* client.members.remove({ params: { ...params, userId: user } })
      yield* printOr(
        { removed: user },
        screen.print(`${printable(user)} is no member any more, and their tokens of this project have ended.`)
      )
    })
  )
).pipe(
  Command.withDescription("End a membership, with the tokens and streams of that member in this project"),
  Command.withShortDescription("End a membership, and the member's tokens here")
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
          ["note", `It signs one browser in as ${user}, once, within ${formatWait(link.expiresAt, now)}.`]
        ])
      )
    })
  )
).pipe(Command.withDescription("Make a link that signs a member's browser in, once"))

const printMember = (member: Member, sentence: string) =>
  Effect.flatMap(Screen, (screen) => printOr(member, screen.print(`${printable(member.userId)} ${sentence}`)))

export const membersCommand = list.pipe(Command.withSubcommands([add, change, remove, invite]))
