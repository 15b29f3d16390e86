/**
 * What review means, said a second time and without a database: the story's model, to which the server is held.
 *
 * Objects have flat properties and every version of them; a suggestion is of
 * the version that its agent saw. Nothing of the server's own rules is used here.
 */

export type State = Readonly<Record<string, number>>

export interface ModelObject {
  /** Each version's properties; the last is the present. */
  readonly versions: Array<State>
  isDeleted: boolean
}

export interface ModelTask {
  readonly object: number
  /** What it would set; null is a deletion. */
  readonly data: State | null
  /** The version that the agent saw; 1 is the first. */
  readonly base: number
  status: "pending" | "completed" | "rejected"
}

export interface Model {
  readonly objects: ReadonlyArray<ModelObject>
  readonly tasks: Array<ModelTask>
}

/** The status and reason that an act is answered with. */
export type Answered = readonly [status: number, reason: string | undefined]

const done: Answered = [200, undefined]
const outdated: Answered = [409, "outdated"]
const decided: Answered = [409, "alreadyDecided"]

const last = <A>(items: ReadonlyArray<A>): A => items.at(-1) as A

const isSame = (one: State, other: State): boolean =>
  Object.keys({ ...one, ...other }).every((name) => one[name] === other[name])

const set = (object: ModelObject, data: State): void => {
  const present = last(object.versions)
  const after = { ...present, ...data }
  if (!isSame(present, after)) object.versions.push(after)
}

/** A person sets properties. */
export const patch = ({ objects }: Model, object: number, data: State): number => {
  const target = objects[object] as ModelObject
  if (target.isDeleted) return 404
  set(target, data)
  return 200
}

export const approve = ({ objects, tasks }: Model, index: number): Answered => {
  const task = tasks[index] as ModelTask
  if (task.status !== "pending") return decided
  const target = objects[task.object] as ModelObject
  if (target.isDeleted) return outdated
  const [base, present] = [target.versions[task.base - 1] as State, last(target.versions)]
  if (task.data === null) {
    if (!isSame(base, present)) return outdated
    target.isDeleted = true
    target.versions.push(present)
  } else {
    const clashes = Object.entries(task.data).some(
      ([name, wanted]) => base[name] !== present[name] && present[name] !== wanted
    )
    if (clashes) return outdated
    set(target, task.data)
  }
  task.status = "completed"
  return done
}

export const reject = ({ tasks }: Model, index: number): Answered => {
  const task = tasks[index] as ModelTask
  if (task.status !== "pending") return decided
  task.status = "rejected"
  return done
}

/** How a suggestion that waits stands before the click; null once it does not wait. */
export const standing = ({ objects }: Model, task: ModelTask): string | null => {
  if (task.status !== "pending") return null
  const target = objects[task.object] as ModelObject
  if (target.isDeleted) return "gone"
  const [base, present] = [target.versions[task.base - 1] as State, last(target.versions)]
  if (target.versions.length === task.base) return "fresh"
  const clashes =
    task.data === null
      ? !isSame(base, present)
      : Object.entries(task.data).some(
          ([name, wanted]) => base[name] !== present[name] && present[name] !== wanted
        )
  return clashes ? "outdated" : "rebasable"
}
