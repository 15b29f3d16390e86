/**
 * One write of a person into the project that the page shows; all that it shows is read again afterwards.
 */
import { useConsole } from "../frame/console-context.tsx"
import { call, inProject } from "./request.ts"
import { type Act, type ActName, useAct } from "./use-act.ts"

export interface Write {
  /** The address behind the project's. */
  readonly path: string
  readonly method: "POST" | "PATCH" | "DELETE"
  readonly body?: unknown
  /** The version that was shown. */
  readonly ifMatch?: number
}

export const useWrite = <A>(what: ActName<Write>, onDone?: (made: A) => void): Act<Write> => {
  const { project } = useConsole()
  return useAct({
    what,
    act: ({ path, method, ...rest }: Write, key) =>
      call<A>(inProject(project.id, path), {
        method,
        ...rest,
        ...(method === "POST" && { idempotencyKey: key })
      }),
    touches: [[project.id]],
    ...(onDone && { onDone })
  })
}
