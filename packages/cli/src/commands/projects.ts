/**
 * `tropism projects`: which projects there are, a new one, and what one is called.
 */
import { ProjectInput } from "@tropism/api/system-api"
import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { inProject, onServer, readPages } from "../access.ts"
import { printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"

const list = Command.make("projects", {}, () =>
  Effect.gen(function* () {
    const { paint } = yield* Screen
    const now = yield* Clock.currentTimeMillis
    const { items } = yield* onServer((client) =>
      readPages((query) => client.projects.list({ query }), Infinity)
    )
    yield* printRecords({
      records: items,
      nothing: `No projects yet. Create one with "tropism projects create NAME".`,
      columns: [
        { title: "PROJECT", cell: (project) => project.id, paint: () => paint.dim },
        { title: "NAME", cell: (project) => project.name },
        {
          title: "AGE",
          align: "right",
          cell: (project) => formatAge(project.createdAt, now),
          paint: () => paint.dim
        }
      ]
    })
  })
).pipe(Command.withDescription("List, create and rename projects"))

const create = Command.make(
  "create",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("The project's name"),
      Argument.withSchema(ProjectInput.fields.name)
    )
  },
  ({ name }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const project = yield* onServer((client) => client.projects.create({ payload: { name } }))
      yield* printOr(project, screen.print(`Created project "${printable(project.name)}": ${project.id}`))
    })
).pipe(Command.withDescription("Create a project"))

const rename = Command.make(
  "rename",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("The new name"),
      Argument.withSchema(ProjectInput.fields.name)
    )
  },
  ({ name }) =>
    inProject(({ client, params, project: before }) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const project = yield* client.projects.rename({ params, payload: { name } })
        yield* printOr(
          project,
          screen.print(`"${printable(before.name)}" is called "${printable(project.name)}" now.`)
        )
      })
    )
).pipe(
  Command.withDescription("Rename the project"),
  Command.withExamples([
    { command: 'tropism projects rename "Shop 2" --project Shop', description: "The id does not change" }
  ])
)

export const projectsCommand = list.pipe(Command.withSubcommands([create, rename]))
