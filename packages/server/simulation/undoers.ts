/**
 * The people of a simulation who have what a run did taken back.
 *
 * They look at a plan and approve it, as it was shown or not any more, and
 * sometimes leave something out. What moved in between is refused, and that is as
 * it should be.
 */
import { isTerminal } from "@tropism/domain/run"
import type { UserId } from "@tropism/domain/ids"
import type { UndoTask } from "@tropism/domain/task"
import { Effect } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { Objects } from "../src/graph/objects.ts"
import { Runs } from "../src/runs/run-store.ts"
import { Tasks } from "../src/review/tasks.ts"
import { Undos } from "../src/review/undo.ts"
import { makeChange, type Person } from "./people.ts"

/** Puts work into something that is there, whoever made it: no undo may take that away. */
const workOn = Effect.fnUntraced(function* (person: Person) {
  const seen = yield* person.ask(
    Effect.flatMap(Objects, (objects) => objects.list({}, "updatedAt", undefined, 10))
  )
  const objects = seen.type === "done" ? seen.value.map(({ object }) => object) : []
  const [first, ...others] = objects.filter(({ actorType }) => actorType === "agent")
  if (first === undefined) return
  yield* makeChange(person, {
    type: "update",
    objectId: person.chance.pick([first, ...others]).id,
    data: { worked: person.chance.below(100) }
  })
})

/** Has a run or two taken back, of those that ended lately. */
export const takeBack = Effect.fnUntraced(function* (name: string, person: Person) {
  const { acknowledged, ask, chance } = person
  const by = name as UserId
  for (let n = chance.between(1, 3); n > 0; n--) {
    yield* Effect.sleep(chance.between(200, 1_500))
    if (chance.oneIn(2)) yield* workOn(person)
    const seen = yield* ask(Effect.flatMap(Runs, (runs) => runs.list({}, undefined, 30)))
    if (seen.type !== "done") continue
    let planned: UndoTask | undefined
    // Most runs have changed nothing, and the door says so.
    for (const { id: runId } of seen.value.filter(({ status }) => isTerminal(status)).slice(0, 8)) {
      const told = yield* ask(Effect.flatMap(Undos, (undos) => undos.plan({ type: "run", runId }, by)))
      planned = told.type === "done" ? told.value?.task : undefined
      if (planned !== undefined) break
    }
    if (planned === undefined) continue
    const { digest, id } = planned
    const items = yield* ask(Effect.flatMap(Undos, (undos) => undos.items(id, undefined, 20)))
    const [first] = items.type === "done" ? (items.value ?? []) : []
    const leaveOut = first !== undefined && chance.oneIn(4) ? [first.id] : []
    if (chance.oneIn(3)) yield* Effect.sleep(chance.between(1, 500))
    const told = yield* ask(
      Effect.flatMap(Tasks, (tasks) =>
        tasks.approve(id, { userId: by, mayTakeBack: true }, digest, null, leaveOut)
      ),
      CrashPoint.hit("task.afterCommit")
    )
    if (told.type === "done") acknowledged.approved.push(id)
  }
})
