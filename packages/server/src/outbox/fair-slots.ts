/**
 * Slots for slow work, shared fairly between projects.
 *
 * A round gives each project a share of the free slots, starting after the one that was served last, and does not wait for the work it
 * starts. The last free slots are reserved for projects without any, so that one project's slow work delays no other.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, FiberSet, type Scope } from "effect"

export interface SlotBounds {
  readonly places: number
  /** Of those, reserved for projects that have none. */
  readonly sparePlaces: number
  readonly placesPerProject: number
}

export interface Places {
  /** Starts work in a slot of a project; the slot is free again when the work ends. */
  readonly occupy: (projectId: ProjectId, work: Effect.Effect<unknown>) => Effect.Effect<void>
  /** Lets each project start its share, and returns whether any work was started. */
  readonly round: <R>(
    projects: ReadonlyArray<{ readonly projectId: ProjectId }>,
    begin: (projectId: ProjectId, atMost: number) => Effect.Effect<number, never, R>
  ) => Effect.Effect<boolean, never, R>
}

/** Creates slots; work in them ends with the scope. */
export const makeFairSlots = ({
  places,
  placesPerProject,
  sparePlaces
}: SlotBounds): Effect.Effect<Places, never, Scope.Scope> =>
  Effect.map(FiberSet.make(), (working) => {
    /** Used slots by project; projects without any are absent. */
    const takenBy = new Map<ProjectId, number>()
    let lastServed: ProjectId | undefined

    const count = (projectId: ProjectId, by: 1 | -1): void => {
      const taken = (takenBy.get(projectId) ?? 0) + by
      if (taken === 0) takenBy.delete(projectId)
      else takenBy.set(projectId, taken)
    }

    const occupy = (projectId: ProjectId, work: Effect.Effect<unknown>) =>
      Effect.suspend(() => {
        count(projectId, 1)
        return Effect.asVoid(
          FiberSet.run(
            working,
            Effect.ensuring(
              work,
              Effect.sync(() => count(projectId, -1))
            )
          )
        )
      })

    const openTo = (projectId: ProjectId, free: number): number => {
      const taken = takenBy.get(projectId) ?? 0
      return Math.min(placesPerProject - taken, Math.max(taken === 0 ? 1 : 0, free - sparePlaces))
    }

    const round: Places["round"] = Effect.fnUntraced(function* (projects, begin) {
      const due = inTurn(projects, lastServed)
      let begun = 0
      for (const [index, { projectId }] of due.entries()) {
        const free = places - (yield* FiberSet.size(working))
        if (free <= 0) break
        const part = Math.min(Math.ceil(free / (due.length - index)), openTo(projectId, free))
        if (part <= 0) continue
        lastServed = projectId
        begun += yield* begin(projectId, part)
      }
      return begun > 0
    })

    return { occupy, round }
  })

/** The projects, sorted by id, starting after the one that was served last. */
export const inTurn = <A extends { readonly projectId: ProjectId }>(
  projects: ReadonlyArray<A>,
  lastServed: ProjectId | undefined
): ReadonlyArray<A> => {
  const first = projects.findIndex(({ projectId }) => lastServed !== undefined && projectId > lastServed)
  return first <= 0 ? projects : [...projects.slice(first), ...projects.slice(0, first)]
}
