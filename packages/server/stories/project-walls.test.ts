/**
 * What the database shows of one project to whoever works in another: nothing, in no table.
 *
 * Tables, views and functions are those that the database itself lists, so what
 * is new fails here until somebody says why it may be so.
 */
import type { PgConnection } from "@effect/sql-pg"
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { connect, errorCode, type PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { definers, views } from "../testing/owners-rights.ts"
import { newProject, startServer, type Story } from "../testing/platform.ts"
import { plantRows } from "../testing/row-plants.ts"
import { make } from "../testing/story-words.ts"
import { suggested } from "../testing/suggestion-words.ts"

/** The tables in which the server's role reads and writes nothing but through functions. */
const closedTables = ["api_tokens", "login_codes", "provider_outages", "sealing_keys", "server_request_keys"]

/** Tables whose policy says more than "this project". */
const otherPolicies: Readonly<Record<string, string>> = {
  // The switch of the whole server is a row of no project, and each project is held by it.
  kill_switches: "project_id is null or this",
  projects: "id"
}

/** What people and agents do in a project, through the doors. */
const furnish = Effect.fnUntraced(function* (story: Story) {
  const one = yield* make(story, "Person", { name: "Ada" })
  const two = yield* make(story, "Person", { name: "Bert" })
  yield* story.post("/relationships", { type: "KNOWS", fromId: one.id, toId: two.id })
  yield* story.delete(`/objects/${two.id}`)
  yield* story.post("/members", { userId: "ada", role: "editor" })
  yield* story.post("/tokens", { name: "hers", userId: "ada" })
  yield* story.post("/tasks", { title: "Look at Ada" })
  yield* suggested(story, { tool: "create_object", arguments: { type: "Person", properties: {} } })
})

interface Two {
  readonly access: PostgresAccess
  readonly ours: string
  readonly theirs: string
  /** Tables of which each row belongs to a project. */
  readonly tables: ReadonlyArray<string>
}

/** Two projects, each with rows in every table, and no server any more. */
class TwoProjects extends Context.Service<TwoProjects, Two>()("@tropism/server/stories/TwoProjects") {
  static readonly layer = Layer.effect(
    TwoProjects,
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const [ours, theirs] = yield* Effect.scoped(
        Effect.gen(function* () {
          const doors = yield* startServer(access)
          const stories = [yield* newProject(doors, access), yield* newProject(doors, access)] as const
          yield* Effect.forEach(stories, furnish)
          return [stories[0].projectId, stories[1].projectId] as const
        })
      )
      yield* plantRows(access, [ours, theirs])
      const rows = yield* ask(
        access,
        `select relname from pg_class c where relnamespace = 'kb'::regnamespace and relkind = 'r'
         and exists (select 1 from pg_attribute where attrelid = c.oid and attname = 'project_id') order by 1`
      )
      return { access, ours, theirs, tables: rows.map(([name]) => String(name)) }
    })
  )
}

/** Asks as the server does, in a transaction of a project or of none, which is undone. */
const asServer = <A>(
  access: PostgresAccess,
  projectId: string | null,
  act: (server: PgConnection.PgConnection) => Effect.Effect<A, unknown>
): Effect.Effect<A> =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* connect(access.serverUrl)
      yield* server.query("begin")
      if (projectId !== null)
        yield* server.queryValues("select set_config('tropism.project', $1, true)", [projectId])
      const answer = yield* act(server)
      yield* server.query("rollback")
      return answer
    })
  ).pipe(Effect.orDie)

const countOf = (server: PgConnection.PgConnection, from: string, condition = "true") =>
  Effect.map(
    server.queryValues(`select count(*)::int from kb.${from} where ${condition}`),
    ([row]) => row?.[0] as number
  )

const text = (rows: ReadonlyArray<ReadonlyArray<unknown>>) => rows.map(([name]) => String(name))

layer(TwoProjects.layer, { timeout: 120_000 })((it) => {
  describe("Requirement: a project's rows are shown to nobody who works in another", () => {
    it.effect("every table has row-level security and says in one policy which project it shows", () =>
      Effect.gen(function* () {
        const { access, tables } = yield* TwoProjects
        const rows = yield* ask(
          access,
          `select c.relname, c.relrowsecurity, (select count(*) from pg_policy where polrelid = c.oid)::int,
             (select replace(pg_get_expr(polqual, polrelid), '( SELECT (NULLIF(current_setting(''tropism.project''::text, true), ''''::text))::uuid AS "nullif")', '$this') from pg_policy where polrelid = c.oid),
             coalesce((select pg_get_expr(polqual, polrelid) = pg_get_expr(polwithcheck, polrelid) and polpermissive and polcmd = '*' and polroles = '{0}' from pg_policy where polrelid = c.oid), true)
           from pg_class c where relnamespace = 'kb'::regnamespace and relkind not in ('v', 'i', 'S', 't', 'c') order by 1`
        )
        const expected = [...tables, ...closedTables.filter((name) => !tables.includes(name)), "projects"]
          .toSorted()
          .map((name) => {
            if (closedTables.includes(name)) return [name, true, 0, null, true]
            const policy =
              otherPolicies[name] === undefined
                ? "(project_id = $this)"
                : name === "projects"
                  ? "(id = $this)"
                  : "((project_id IS NULL) OR (project_id = $this))"
            return [name, true, 1, policy, true]
          })
        expect(rows).toEqual(expected)
        expect(tables.length).toBeGreaterThan(40)
      })
    )

    it.effect("with no project set, every table and view answers no row", () =>
      Effect.gen(function* () {
        const { access, tables } = yield* TwoProjects
        const places = [...tables, "projects", ...Object.keys(views)]
        const seen = yield* asServer(access, null, (server) =>
          Effect.forEach(places, (place) => Effect.map(countOf(server, place), (count) => [place, count]))
        )
        expect(seen).toEqual(places.map((place) => [place, 0]))
      })
    )

    it.effect("with one project set, every table shows its rows and none of the other's", () =>
      Effect.gen(function* () {
        const { access, ours, tables, theirs } = yield* TwoProjects
        const counted = yield* ask(
          access,
          tables
            .map(
              (table) =>
                `select '${table}', count(*) filter (where project_id = '${ours}')::int, count(*) filter (where project_id = '${theirs}')::int from kb.${table}`
            )
            .join(" union all ")
        )
        // There is something to be seen on both sides.
        expect(counted.filter(([, here, there]) => here === 0 || there === 0)).toEqual([])
        const seen = yield* asServer(access, ours, (server) =>
          Effect.forEach(tables, (table) => Effect.map(countOf(server, table), (count) => [table, count]))
        )
        expect(seen).toEqual(tables.map((table) => [table, counted.find(([name]) => name === table)?.[1]]))
        const others = yield* asServer(access, ours, (server) =>
          Effect.all([
            countOf(server, "projects"),
            countOf(server, "project_objects"),
            countOf(server, "project_objects", "id not in (select id from kb.graph_objects)"),
            countOf(server, "project_passages"),
            countOf(server, "project_runs"),
            countOf(server, "project_runs", "id not in (select id from kb.agent_runs)"),
            countOf(server, "tokens_here"),
            countOf(server, "tokens_here", `'${theirs}'::uuid = any(project_ids)`)
          ])
        )
        const passages = counted.find(([name]) => name === "passages")?.[1]
        const told = yield* ask(
          access,
          `select count(*)::int from kb.agent_runs where project_id = '${ours}' and (summary is not null or error_message is not null)`
        )
        expect(told).not.toEqual([[0]])
        expect(others).toEqual([1, 2, 0, passages, told[0]?.[0], 0, 1, 0])
      })
    )

    it.effect("nothing of the other project can be changed, taken or made", () =>
      Effect.gen(function* () {
        const { access, ours, tables, theirs } = yield* TwoProjects
        const here = `project_id = '${ours}'`
        const there = `project_id = '${theirs}'`
        const acts = [
          `update kb.projects set name = 'x' where id = '${theirs}' returning 1`,
          ...tables.flatMap((table) => [
            `update kb.${table} set project_id = project_id where ${there} returning 1`,
            `delete from kb.${table} where ${there} returning 1`
          ])
        ]
        const gifts = tables.map((table) => `update kb.${table} set project_id = '${theirs}' where ${here}`)
        const outcomes = yield* asServer(access, ours, (server) =>
          Effect.forEach([...acts, ...gifts], (act) =>
            Effect.gen(function* () {
              yield* server.query("savepoint before")
              const outcome = yield* Effect.catch(
                Effect.map(server.queryValues(act), (rows) => rows.length),
                (error) => Effect.succeed(errorCode(error))
              )
              yield* server.query("rollback to before")
              return [act, outcome] as const
            })
          )
        )
        // A right that the role lacks is 42501, and so is what the policy refuses.
        expect(
          outcomes.slice(0, acts.length).filter(([, outcome]) => outcome !== 0 && outcome !== "42501")
        ).toEqual([])
        expect(outcomes.slice(acts.length).filter(([, outcome]) => outcome !== "42501")).toEqual([])
        expect(outcomes.filter(([, outcome]) => outcome === 0).length).toBeGreaterThan(30)
      })
    )

    it.effect("what runs with the owner's rights is known, with the reason why it may", () =>
      Effect.gen(function* () {
        const { access } = yield* TwoProjects
        const found = yield* ask(
          access,
          `select relname from pg_class c join pg_namespace n on n.oid = relnamespace
           where relkind in ('v', 'm') and n.nspname not in ('pg_catalog', 'information_schema') order by 1`
        )
        expect(text(found)).toEqual(Object.keys(views).toSorted())
        const functions = yield* ask(
          access,
          `select proname from pg_proc p join pg_namespace n on n.oid = pronamespace
           where prosecdef and n.nspname not in ('pg_catalog', 'information_schema') order by 1`
        )
        expect(text(functions)).toEqual(Object.keys(definers).toSorted())
        const careless = yield* ask(
          access,
          `select p.oid::regprocedure::text from pg_proc p where prosecdef and pronamespace = 'kb'::regnamespace
           and (not coalesce(proconfig @> array['search_path=kb, pg_temp'], false)
             or exists (select 1 from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0))`
        )
        expect(text(careless)).toEqual([])
      })
    )

    it.effect("the server's role owns nothing, can make nothing and is above no policy", () =>
      Effect.gen(function* () {
        const { access } = yield* TwoProjects
        const role = yield* asServer(access, null, (server) =>
          server.queryValues(
            `select session_user = current_user, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,
               (select count(*) from pg_auth_members where member = r.oid)::int,
               (select count(*) from pg_shdepend where refobjid = r.oid and deptype = 'o')::int,
               has_database_privilege(current_database(), 'create'), has_database_privilege(current_database(), 'temporary'),
               (select count(*) from pg_namespace n where has_schema_privilege(n.oid, 'create'))::int
             from pg_roles r where rolname = current_user`
          )
        )
        expect(role).toEqual([[true, false, false, false, false, false, 0, 0, false, false, 0]])
        const closed = yield* asServer(access, null, (server) =>
          server.queryValues(
            `select name from unnest(array['${closedTables.join("','")}']) name
             where has_table_privilege('kb.' || name, 'select, insert, update, delete, truncate, references, trigger')
                or has_any_column_privilege('kb.' || name, 'select, insert, update, references')`
          )
        )
        expect(closed).toEqual([])
        const wide = yield* asServer(access, null, (server) =>
          server.queryValues(
            `select relname from pg_class where relnamespace = 'kb'::regnamespace and relkind = 'r'
             and has_table_privilege(oid, 'truncate, references, trigger')`
          )
        )
        expect(wide).toEqual([])
      })
    )
  })
})
