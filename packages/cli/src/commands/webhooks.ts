/**
 * `tropism webhooks`: the addresses at which other systems trigger an agent; made, listed, rotated and revoked.
 *
 * A token is printed once, by the command that made it.
 */
import { WebhookId } from "@tropism/domain/ids"
import { type OpenedWebhook, RotationInput, WebhookInput } from "@tropism/domain/webhook"
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge } from "../terminal/time.ts"

const agent = Argument.String("agent").pipe(Argument.withDescription("The agent's name or id"))

const webhook = Argument.String("webhook").pipe(
  Argument.withDescription("The webhook's id"),
  Argument.withSchema(WebhookId)
)

const list = Command.make("list", { agent }, ({ agent }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      const { id, name } = yield* findAgent(access, agent)
      const params = { ...access.params, agentId: id }
      const { items } = yield* readPages((query) => access.client.webhooks.list({ params, query }), Infinity)
      yield* printRecords({
        records: items,
        nothing: `The agent ${name} has no webhooks. Create one with "tropism webhooks create ${name}".`,
        columns: [
          { title: "WEBHOOK", cell: (one) => one.id, paint: () => paint.dim },
          { title: "NAME", cell: (one) => one.name, shrinks: "end" },
          { title: "RATE", align: "right", cell: (one) => `${one.ratePerMinute}/min` },
          {
            title: "LAST DELIVERY",
            align: "right",
            cell: (one) => (one.lastDeliveryAt === null ? "never" : formatAge(one.lastDeliveryAt, now))
          },
          { title: "ADDRESS", cell: (one) => one.url }
        ]
      })
    })
  )
).pipe(Command.withDescription("List an agent's webhooks"))

const create = Command.make(
  "create",
  {
    agent,
    name: Flag.String("name").pipe(
      Flag.withDescription("Its purpose"),
      Flag.withSchema(WebhookInput.fields.name),
      Flag.optional
    ),
    rate: Flag.Int("rate").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
      Flag.withMetavar("<per minute>"),
      Flag.withDescription("Max deliveries per minute (default: 60)"),
      Flag.optional
    ),
    untrusted: Flag.Boolean("untrusted").pipe(
      Flag.withDescription("Mark deliveries as untrusted: runs they trigger can only suggest"),
      Flag.withDefault(false)
    )
  },
  ({ agent, name, rate, untrusted }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id } = yield* findAgent(access, agent)
        const made = yield* access.client.webhooks.create({
          params: { ...access.params, agentId: id },
          payload: { name: Option.getOrNull(name), ratePerMinute: Option.getOrNull(rate), untrusted }
        })
        yield* printOpened(made)
      })
    )
).pipe(
  Command.withDescription("Create a webhook for an agent with the trigger webhook, and show its token once"),
  Command.withShortDescription("Create a webhook and show its token once")
)

const rotate = Command.make(
  "rotate",
  {
    agent,
    webhook,
    grace: Flag.Int("grace").pipe(
      Flag.withMetavar("<seconds>"),
      Flag.withDescription("How long the old token stays valid (default: 0, revoked immediately)"),
      Flag.withSchema(RotationInput.fields.graceSeconds),
      Flag.optional
    )
  },
  ({ agent, grace, webhook }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id } = yield* findAgent(access, agent)
        const rotated = yield* access.client.webhooks.rotate({
          params: { ...access.params, agentId: id, webhookId: webhook },
          payload: { graceSeconds: Option.getOrNull(grace) }
        })
        yield* printOpened(rotated)
      })
    )
).pipe(Command.withDescription("Rotate a webhook's token and show the new one once"))

const revoke = Command.make("revoke", { agent, webhook }, ({ agent, webhook }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const { id } = yield* findAgent(access, agent)
      yield* access.client.webhooks.revoke({ params: { ...access.params, agentId: id, webhookId: webhook } })
      yield* printOr({ revoked: webhook }, screen.print(`The webhook ${webhook} is revoked.`))
    })
  )
).pipe(Command.withDescription("Revoke a webhook"))

const printOpened = (opened: OpenedWebhook) =>
  printOr(
    opened,
    printFacts([
      ["webhook", opened.id],
      ["address", opened.url],
      ["token", opened.token],
      ["secret", opened.signingSecret],
      ["rate", `${opened.ratePerMinute} deliveries per minute`],
      ["note", "The token and the secret are shown only once."]
    ])
  )

export const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Let other systems trigger an agent"),
  Command.withSubcommands([list, create, rotate, revoke])
)
