/**
 * Todos: what people have set themselves to do, numbered for each of them.
 *
 * Every verb names its owner and the type in its statement, so nobody reaches
 * another's todo by it, and nothing that is not a todo. A number is taken under
 * the owner's counter in the transaction that keeps the todo: what is undone
 * leaves no gap, and a deleted todo's number is never given again.
 */
import type { TaskId, UserId } from "@tropism/domain/ids"
import type { Taint } from "@tropism/domain/taint"
import type { TodoTask } from "@tropism/domain/task"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { todoLimits } from "./limits.ts"

/** Its owner has as many open todos as one may have. */
export class TooManyTodos extends Schema.TaggedError<TooManyTodos>()("TooManyTodos", {
  detail: Schema.String
}) {}

/** A todo among those of its owner. */
export type TodoName = { readonly id: TaskId } | { readonly number: number }

export interface Todo extends Pick<TodoTask, "id" | "number" | "title" | "description" | "status"> {
  /** What of untrusted sources the run had read that said it; a person's own words take it away. */
  readonly untrusted: ReadonlyArray<Taint>
}

/** What it is to say from now on; absent is as before, and no text takes a description away. */
export interface TodoWords {
  readonly title?: string | null | undefined
  readonly description?: string | null | undefined
  /** What of untrusted sources whoever says it has read. */
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
    /** An owner's todos in the order of their numbers; of more than `limit`, the newest. */
    readonly list: (
      owner: UserId,
      status: "pending" | "completed" | undefined,
      limit: number
    ) => InProject<ReadonlyArray<Todo>>
    /** Says that it is done; `isNew` is false where it was already. Undefined when its owner has none of this name. */
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

      /** The one todo of its owner that is meant, if it is there. */
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
        // Whoever adds at the same time waits for the counter, so what is counted here is all there is.
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
        // Nobody vouches for words that they leave as they are.
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
