/**
 * Todos: people's own tasks, numbered per person.
 *
 * **Invariant** Every statement names the owner and the type, so no verb reaches another person's todo or another kind
 * of task. The number comes from the owner's counter in the transaction that stores the todo: a rollback leaves no gap,
 * and a deleted todo's number is never reused.
 */
import type { TaskId, UserId } from "@tropism/domain/ids"
import type { Taint } from "@tropism/domain/taint"
import type { TodoTask } from "@tropism/domain/task"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { todoLimits } from "./limits.ts"

/** The owner has reached the limit of open todos. */
export class TooManyTodos extends Schema.TaggedError<TooManyTodos>()("TooManyTodos", {
  detail: Schema.String
}) {}

/** Identifies a todo of its owner. */
export type TodoName = { readonly id: TaskId } | { readonly number: number }

export interface Todo extends Pick<TodoTask, "id" | "number" | "title" | "description" | "status"> {
  /** Untrusted sources read by the run that wrote it; text from a person clears it. */
  readonly untrusted: ReadonlyArray<Taint>
}

/** New text of a todo; an absent field is unchanged, an empty text clears the description. */
export interface TodoWords {
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** Untrusted sources that the writer has read. */
  readonly untrusted?: ReadonlyArray<Taint>
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Todos extends Context.Service<
  Todos,
  {
    readonly add: (
      owner: UserId,
      words: TodoWords & { readonly title: string }
    ) => InProject<Todo, TooManyTodos>
    /** An owner's todos by number; the newest when there are more than `limit`. */
    readonly list: (
      owner: UserId,
      status: "pending" | "completed" | undefined,
      limit: number
    ) => InProject<ReadonlyArray<Todo>>
    /** Completes a todo; `isNew` is false when it was completed before. Undefined when the owner has no such todo. */
    readonly complete: (
      owner: UserId,
      name: TodoName
    ) => InProject<(Todo & { readonly isNew: boolean }) | undefined>
    readonly edit: (owner: UserId, name: TodoName, words: TodoWords) => InProject<Todo | undefined>
    readonly remove: (owner: UserId, name: TodoName) => InProject<Todo | undefined>
  }
>()("@tropism/server/task/Todos") {
  static readonly layer = Layer.effect(
    Todos,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const columns = sql`id, number, title, description, status, untrusted`

      /** The matching todo of its owner, if it exists. */
      const meant = Effect.fnUntraced(function* (owner: UserId, name: TodoName) {
        const { projectId } = yield* ProjectTransaction
        const which = "id" in name ? sql`id = ${name.id}` : sql`number = ${name.number}::bigint`
        return sql`project_id = ${projectId} and owner = ${owner} and type = 'todo' and deleted_at is null and ${which}`
      })

      const add = Effect.fn("Todos.add")(function* (
        owner: UserId,
        { description, title, untrusted = [] }: TodoWords & { readonly title: string }
      ) {
        const { projectId } = yield* ProjectTransaction
        const id = (yield* ids.next) as TaskId
        const { lastNumber } = yield* Effect.flatMap(
          sql<{ lastNumber: bigint }>`
            insert into kb.todo_counters as counter (project_id, owner, last_number) values (${projectId}, ${owner}, 1)
            on conflict (project_id, owner) do update set last_number = counter.last_number + 1 returning last_number`,
          onlyRow
        )
        // Concurrent additions wait for the counter, so this count is complete.
        const [todo] = yield* sql<TodoRow>`
          insert into kb.tasks (id, project_id, owner, number, type, title, description, payload, digest, evidence, untrusted, depth)
          select ${id}, ${projectId}, ${owner}, ${lastNumber}, 'todo', ${title.trim()}, ${description || null}, '{}', '', '[]',
            ${JSON.stringify(untrusted)}::text::jsonb, 0
          where (
            select count(*) from (
              select 1 from kb.tasks where project_id = ${projectId} and owner = ${owner} and type = 'todo' and status = 'pending'
                and deleted_at is null limit ${todoLimits.openPerOwner}
            ) open
          ) < ${todoLimits.openPerOwner}
          returning ${columns}`
        return todo ? toTodo(todo) : yield* new TooManyTodos({ detail: tooMany })
      }, orDie)

      const list = Effect.fn("Todos.list")(function* (
        owner: UserId,
        status: "pending" | "completed" | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<TodoRow>`
          select newest.* from unnest(${status === undefined ? ["pending", "completed"] : [status]}::text[]) as state(name), lateral (
            select ${columns} from kb.tasks where project_id = ${projectId} and owner = ${owner} and type = 'todo'
              and status = state.name and deleted_at is null order by id desc limit ${limit}
          ) newest order by newest.id desc limit ${limit}`
        return rows.map(toTodo).toSorted((a, b) => a.number - b.number)
      }, orDie)

      const get = Effect.fnUntraced(function* (owner: UserId, name: TodoName) {
        const [todo] = yield* sql<TodoRow>`select ${columns} from kb.tasks where ${yield* meant(owner, name)}`
        return todo && toTodo(todo)
      })

      const complete = Effect.fn("Todos.complete")(function* (owner: UserId, name: TodoName) {
        const [done] = yield* sql<TodoRow>`
          update kb.tasks set status = 'completed', resolved_by = ${owner}, resolved_at = now()
          where ${yield* meant(owner, name)} and status = 'pending' returning ${columns}`
        if (done) return { ...toTodo(done), isNew: true }
        const earlier = yield* get(owner, name)
        return earlier && { ...earlier, isNew: false }
      }, orDie)

      const edit = Effect.fn("Todos.edit")(function* (
        owner: UserId,
        name: TodoName,
        { description, title, untrusted = [] }: TodoWords
      ) {
        // Text that a writer leaves unchanged keeps its taint.
        const isWhole = typeof title === "string" && typeof description === "string"
        const [todo] = yield* sql<TodoRow>`
          update kb.tasks set title = coalesce(${title?.trim() ?? null}::text, title),
            description = nullif(coalesce(${description ?? null}::text, description), ''),
            untrusted = kb.with_taint(case when ${isWhole} then '[]' else untrusted end, ${JSON.stringify(untrusted)}::text::jsonb, 0)
          where ${yield* meant(owner, name)} returning ${columns}`
        return todo && toTodo(todo)
      }, orDie)

      const remove = Effect.fn("Todos.remove")(function* (owner: UserId, name: TodoName) {
        const [todo] = yield* sql<TodoRow>`
          update kb.tasks set deleted_at = now() where ${yield* meant(owner, name)} returning ${columns}`
        return todo && toTodo(todo)
      }, orDie)

      return Todos.of({ add, list, complete, edit, remove })
    })
  )
}

const tooMany = `You have ${todoLimits.openPerOwner} open todos, as many as there may be: complete or delete some`

interface TodoRow extends Omit<Todo, "number"> {
  readonly number: bigint
}

const toTodo = ({ number, ...todo }: TodoRow): Todo => ({ ...todo, number: Number(number) })
