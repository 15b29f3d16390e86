/**
 * `tropism token`: the tokens that let people and programs in; made, listed and ended.
 *
 * A secret is printed once, by the command that made it. An admin who names
 * somebody new lets them in first, and is told so.
 */
import { includesRole, roleIn, type Role } from "@tropism/api/authorization"
import { type NewToken, ServerTokenInput, type Token, TokenInput } from "@tropism/api/members-api"
import { TokenId, UserId } from "@tropism/domain/ids"
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, onServer, readPages } from "../access.ts"
import { readExpiry } from "../expiry.ts"
import { statusOf } from "@tropism/client/failure-sentence"
import { exitCodes } from "../exit-codes.ts"
import { failure, requestFailure, sayingAlso } from "../failure.ts"
import { makeNotice } from "../notice.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { typed } from "../typed-input.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge, formatWait } from "../terminal/time.ts"
import { roleFlag } from "./members.ts"

const server = Flag.Boolean("server").pipe(
  Flag.withDescription("Use tokens for all projects of the server, not for this project"),
  Flag.withDefault(false)
)

const list = Command.make("token", { server }, ({ server }) =>
  Effect.flatMap(
    server
      ? onServer((client) => readPages((query) => client.serverTokens.list({ query }), Infinity))
      : inProject(({ client, params }) =>
          readPages((query) => client.tokens.list({ params, query }), Infinity)
        ),
    printTokens
  )
).pipe(
  Command.withDescription("List, create and revoke tokens; admins see the tokens of all members"),
  Command.withShortDescription("List, create and revoke tokens")
)

const printTokens = ({ items }: { readonly items: ReadonlyArray<Token> }) =>
  Effect.gen(function* () {
    const { paint } = yield* Screen
    const now = yield* Clock.currentTimeMillis
    yield* printRecords<Token>({
      records: items,
      nothing: `No tokens yet. Create one with "tropism token create NAME".`,
      columns: [
        { title: "TOKEN", cell: (token) => token.id, paint: () => paint.dim },
        { title: "NAME", cell: (token) => token.name ?? "", shrinks: "end" },
        { title: "USER", cell: (token) => token.userId },
        { title: "ROLE", cell: (token) => token.role },
        {
          title: "EXPIRES",
          align: "right",
          cell: ({ expiresAt }) =>
            expiresAt === null
              ? "never"
              : Date.parse(expiresAt) <= now
                ? "over"
                : `in ${formatWait(expiresAt, now)}`
        },
        {
          title: "LAST USED",
          align: "right",
          cell: ({ lastUsedAt }) => (lastUsedAt === null ? "never" : formatAge(lastUsedAt, now))
        }
      ]
    })
  })

const create = Command.make(
  "create",
  {
    server,
    name: Argument.String("name").pipe(
      Argument.withDescription("Its purpose (default: command line)"),
      Argument.withDefault("command line")
    ),
    user: Flag.String("user").pipe(
      Flag.withDescription("The owner (default: you); an admin can add a new member this way"),
      Flag.withSchema(UserId),
      Flag.optional
    ),
    role: roleFlag.pipe(
      Flag.withDescription("The highest role of the token (default: the owner's role)"),
      Flag.optional
    ),
    expires: Flag.String("expires").pipe(
      Flag.withMetavar("<12h | 90d | instant>"),
      Flag.withDescription("Expiry (default: never)"),
      Flag.optional
    )
  },
  (wish) =>
    Effect.gen(function* () {
      const expiresAt = Option.isSome(wish.expires) ? yield* readExpiry(wish.expires.value) : null
      const role = Option.getOrNull(wish.role)
      const userId = Option.getOrNull(wish.user)
      if (!wish.server) {
        const payload = yield* typed(TokenInput, { name: wish.name, role, userId, expiresAt })
        return yield* inProject((access) => createInProject(access, payload))
      }
      const asked = { name: wish.name, role: role ?? "viewer", userId: userId ?? wish.name, expiresAt }
      const payload = yield* typed(ServerTokenInput, asked)
      const made = yield* onServer((client) => client.serverTokens.create({ payload }))
      yield* printMade(made, undefined)
    })
).pipe(
  Command.withDescription("Create a token and show its secret once"),
  Command.withExamples([
    {
      command: "tropism token create pipeline --user ci --role editor --expires 90d",
      description: "For a program; adds the user ci as an editor if new"
    },
    {
      command: "tropism token create prometheus --server",
      description: "For monitoring: reads all projects"
    }
  ])
)

const createInProject = (access: Access, payload: TokenInput) =>
  Effect.gen(function* () {
    const { client, connection, params, project } = access
    const say = yield* makeNotice
    const me = yield* client.projects.me()
    const userId = payload.userId ?? me.userId
    const member = yield* findMember(access, userId)
    if (member !== undefined || roleIn(me, project.id) !== "admin") {
      // Somebody else's token may do what they may; one's own what one may oneself.
      const role = payload.role ?? member?.role
      return yield* Effect.flatMap(
        client.tokens.create({ params, payload: role === undefined ? payload : { ...payload, role } }),
        (made) => printMade(made, lessThanAsked(member?.role, made, project.name))
      )
    }
    const role: Role | null = payload.role ?? (userId === me.userId ? me.role : null)
    if (role === null)
      return yield* failure(
        `${userId} is not a member of "${project.name}" yet. Set their role with --role. No token was created.`,
        exitCodes.usage
      )
    // What bounds a token of one's own is no bound on oneself.
    const memberRole = userId === me.userId ? "admin" : role
    const letIn = `${userId} was added to "${project.name}" as ${memberRole}.`
    yield* client.members.add({ params, payload: { userId, role: memberRole } })
    const undone = `${letIn} "tropism members remove ${userId}" removes them.`
    const made = yield* client.tokens.create({ params, payload: { ...payload, role } }).pipe(
      Effect.mapError((error) => sayingAlso(requestFailure(error, connection.url), undone)),
      Effect.onInterrupt(() => say(`Outcome unknown: the token may have been created. ${undone}`))
    )
    yield* printMade(made, letIn, true)
  })

/** That a token does no more than its member may; undefined where it may do all that it was made for. */
const lessThanAsked = (role: Role | undefined, made: typeof NewToken.Type, project: string) =>
  role === undefined || includesRole(role, made.role)
    ? undefined
    : `${made.userId} is ${role} in "${project}", which limits the token.`

const findMember = ({ client, params }: Access, userId: UserId) =>
  client.members
    .get({ params: { ...params, userId } })
    .pipe(Effect.catch((error) => (statusOf(error) === 404 ? Effect.succeed(undefined) : Effect.fail(error))))

const printMade = (made: typeof NewToken.Type, note: string | undefined, addedMember = false) =>
  printOr(
    { ...made, addedMember },
    printFacts([
      ["token", made.token],
      ["id", made.id],
      ["user", `${made.userId}, ${made.role}`],
      ["expires", made.expiresAt ?? "never"],
      ["note", `${note === undefined ? "" : `${note} `}The token is shown only once.`]
    ])
  )

const revoke = Command.make(
  "revoke",
  {
    server,
    token: Argument.String("token").pipe(
      Argument.withDescription("The token's id, as shown by list"),
      Argument.withSchema(TokenId)
    )
  },
  ({ server, token }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      yield* server
        ? onServer((client) => client.serverTokens.revoke({ params: { tokenId: token } }))
        : inProject(({ client, params }) => client.tokens.revoke({ params: { ...params, tokenId: token } }))
      yield* printOr({ revoked: token }, screen.print(`The token ${token} is revoked.`))
    })
).pipe(Command.withDescription("Revoke a token in this project"))

export const tokenCommand = list.pipe(Command.withSubcommands([create, revoke]))
