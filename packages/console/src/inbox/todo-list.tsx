/**
 * One's own todos, each told in a line and done with a click.
 */
import type { TodoTask } from "@tropism/domain/task"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useId } from "react"
import { Button } from "../parts/button.tsx"
import { LongText } from "../parts/long-text.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useLinkedCard } from "./linked-card.ts"
import { TaskSection } from "./task-frame.tsx"
import { useSettling } from "./use-settling.ts"

interface TodoListProps {
  readonly projectId: string
  readonly tasks: ReadonlyArray<TodoTask>
  /** Whether the reader may settle them. */
  readonly canSettle: boolean
}

export const TodoList = ({ projectId, tasks, canSettle }: TodoListProps): ReactNode => (
  <TaskSection title="Todos" words="yours" count={tasks.length}>
    {tasks.map((task) => (
      <li key={task.id} className="enter min-w-0">
        <Todo projectId={projectId} task={task} canSettle={canSettle} />
      </li>
    ))}
  </TaskSection>
)

type TodoProps = Pick<TodoListProps, "projectId" | "canSettle"> & { readonly task: TodoTask }

const Todo = ({ projectId, task, canSettle }: TodoProps): ReactNode => {
  const { settle, isSending } = useSettling(projectId, task)
  const titleId = useId()
  const { attributes, frame } = useLinkedCard(task.id)
  return (
    <article
      {...attributes}
      aria-labelledby={titleId}
      aria-busy={isSending}
      className={`flex flex-wrap items-start gap-3.5 rounded-2xl border bg-surface p-4 shadow-card sm:p-5 ${frame}`}
    >
      <div className="min-w-0 grow basis-60">
        <h3 id={titleId} className="font-semibold text-pretty">
          <LongText text={task.title} />
        </h3>
        {task.description !== null && (
          <p className="mt-0.5 text-sm text-ink-soft">
            <LongText text={task.description} />
          </p>
        )}
        <p className="mt-1 flex items-center gap-x-2.5 text-xs text-ink-faint">
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            className="rounded text-center hover:text-ink hover:underline pointer-coarse:min-w-6"
            aria-label={`Link to todo t${task.number}`}
          >
            t{task.number}
          </Link>
          <TimeAgo instant={task.createdAt} />
        </p>
      </div>
      {canSettle && (
        <p className="flex gap-2">
          <Button disabled={isSending} onClick={() => settle({ how: "complete" })}>
            Complete
          </Button>
        </p>
      )}
    </article>
  )
}
