/**
 * One change of the graph by a person; what the page reads is read again afterwards.
 */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { Effect } from "effect"
import { useConsole } from "../frame/console-context.tsx"
import { call, inProject } from "../server/request.ts"

interface Write {
  /** The address behind the project's. */
  readonly path: string
  readonly request: Parameters<typeof call>[1]
}

export const useGraphWrite = <A>(onDone: (answer: A) => void) => {
  const { project } = useConsole()
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: ({ path, request }: Write) =>
      Effect.runPromise(call<A>(inProject(project.id, path), request)),
    // The page is fresh before it goes on: the next change is made against what it then shows.
    onSuccess: (answer) =>
      queryClient.invalidateQueries({ queryKey: [project.id] }).then(() => onDone(answer)),
    // Somebody else was faster: what the page shows is old.
    onError: () => queryClient.invalidateQueries({ queryKey: [project.id] })
  })
}
