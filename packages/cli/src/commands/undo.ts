/**
 * `tropism undo`: takes back what a run, a version of an agent or a chain did, after showing what that means.
 *
 * The plan is a task of the project. Whoever does not agree at once finds it
 * among the tasks; the digest of what was shown goes with the agreement.
 */
import { RunId } from "@tropism/domain/ids"
import type { UndoTask } from "@tropism/domain/task"
import type { UndoItem } from "@tropism/domain/undo"
import { Effect, Queue, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { shortId, undoCounts, valueText } from "../change-text.ts"
import { findEvent } from "../events-by-place.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import { JsonFlag } from "../settings.ts"
import { Keyboard } from "../terminal/keyboard.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { renderTable } from "../terminal/table.ts"

const yes = Flag.Boolean("yes").pipe(
  Flag.withDescription("Apply the plan without asking"),
  Flag.withDefault(false)
)

const run = Command.make(
  "run",
  {
    run: Argument.String("run").pipe(Argument.withDescription("A run's id"), Argument.withSchema(RunId)),
    yes
  },
  (input) =>
    undo(input.yes, ({ client, params }) => client.undos.undoRun({ params: { ...params, runId: input.run } }))
).pipe(Command.withDescription("Undo the changes of a run and its sub-agent runs"))

const chain = Command.make(
  "chain",
  {
    event: Argument.String("event").pipe(
      Argument.withDescription(
        'An event of the chain, by its id or its position in the feed as shown by "tropism tail", or the id of the run that started it'
      )
    ),
    yes
  },
  (input) =>
    undo(input.yes, (access) =>
      Effect.gen(function* () {
        const { event, id } = yield* findEvent(access, input.event)
        return yield* access.client.undos.undoChain({
          params: { ...access.params, rootEventId: event?.rootEventId ?? id }
        })
      })
    )
).pipe(
  Command.withDescription("Undo agents' changes in a chain; the root event is kept"),
  Command.withShortDescription("Undo agents' changes in a chain")
)

const agent = Command.make(
  "agent",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("An agent's name or id")),
    version: Argument.String("version").pipe(
      Argument.withDescription("One of its versions"),
      Argument.withSchema(Schema.FiniteFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)))
    ),
    yes
  },
  (input) =>
    undo(input.yes, (access) =>
      Effect.gen(function* () {
        const { id } = yield* findAgent(access, input.agent)
        return yield* access.client.undos.undoAgent({
          params: { ...access.params, agentId: id },
          payload: { version: input.version }
        })
      })
    )
).pipe(Command.withDescription("Undo the changes of one version of an agent"))

export const undoCommand = Command.make("undo").pipe(
  Command.withDescription("Undo agents' changes; later changes by people are kept"),
  Command.withSubcommands([run, chain, agent]),
  Command.withExamples([
    { command: "tropism undo run 0197…", description: "Show the undo plan of a run and ask" },
    { command: "tropism undo agent tidier 3 --yes", description: "Undo all changes of version 3" }
  ])
)

/** Plans, shows, asks and does. */
const undo = <E, R>(isAgreed: boolean, plan: (access: Access) => Effect.Effect<UndoTask, E, R>) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const keyboard = yield* Keyboard
      const isJson = yield* JsonFlag
      const task = yield* plan(access)
      const { items } = yield* readPages(
        (query) => access.client.undos.items({ params: { ...access.params, taskId: task.id }, query }),
        Infinity
      )
      if (!isJson) yield* printPlan(task, items)
      const { ready } = task.payload.counts
      const agrees = ready > 0 && (isAgreed || (!isJson && (yield* ask(`Undo ${ready} of them? (yes/no)`))))
      if (!agrees) {
        const { number } = task
        yield* printOr(
          { task, items },
          screen.print(
            ready === 0
              ? `Nothing can be undone. Task ${number} keeps the plan; reject it with: tropism tasks reject ${number}`
              : `Nothing was undone. The plan is pending: tropism tasks approve ${number}, or reject it.`
          )
        )
        // A person who was asked and said no has what was wanted; where none could be asked, nobody has.
        if (ready > 0 && (isJson || !keyboard.isTerminal))
          return yield* failure("Nothing was undone: a person must confirm it. Pass --yes.", exitCodes.usage)
        return
      }
      const done = yield* access.client.tasks.approve({
        params: { ...access.params, taskId: task.id },
        payload: { digest: task.digest }
      })
      yield* printOr({ task: done, items }, screen.print(`Undone: task ${task.number} is ${done.status}.`))
    })
  )

const printPlan = (task: UndoTask, items: ReadonlyArray<UndoItem>) =>
  Effect.gen(function* () {
    const { paint, print, width } = yield* Screen
    yield* print(
      `Task ${task.number}: ${task.title}: ${undoCounts(task)}`,
      ...renderTable(
        items,
        [
          {
            title: "STATUS",
            cell: (item) => item.status,
            paint: (item) => paintState(paint, item.status)
          },
          { title: "WHAT", shrinks: "start", cell: itemSubject },
          { title: "CHANGE", shrinks: "end", cell: itemChange },
          { title: "REASON", shrinks: "end", cell: (item) => item.reason }
        ],
        { paint, width: yield* width }
      )
    )
  })

const itemSubject = ({ entityType, id, key, objectType }: UndoItem): string =>
  `${entityType === "relationship" ? "relationship " : ""}${objectType} ${key ?? shortId(id)}`

const itemChange = ({ action, properties, status }: UndoItem): string => {
  if (status !== "ready") return "stays"
  const back = properties
    .filter((property) => property.status === "ready")
    .map((property) => `${property.property}: ${valueText(property.now)} → ${valueText(property.back)}`)
  return [...(action === "update" ? [] : [action]), ...back].join(", ")
}

/** Asks whoever sits at the terminal; nobody there is no agreement. */
const ask = (question: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const keyboard = yield* Keyboard
      if (!keyboard.isTerminal) return false
      const screen = yield* Screen
      const { prompt, typed } = yield* keyboard.listen("lines")
      yield* screen.print(question)
      yield* prompt
      const answer = yield* Queue.take(typed)
      if (answer.type === "interrupt") return yield* Effect.interrupt
      return answer.type === "line" && /^\s*y(es)?\s*$/i.test(answer.text)
    })
  )
