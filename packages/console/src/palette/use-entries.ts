/**
 * All that the palette offers for what is typed: pages, commands, and what the API finds.
 *
 * It reads nothing before somebody opens it, and searches objects only when
 * nobody has typed for a moment.
 */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect } from "effect"
import { subjectOf } from "../feed/feed-items.ts"
import { useConsole } from "../frame/console-context.tsx"
import { pages } from "../frame/pages.ts"
import { useSignOut } from "../frame/use-sign-out.ts"
import { limits } from "../limits.ts"
import { agentsQuery } from "../server/agent-queries.ts"
import { conversationsQuery } from "../server/chat-queries.ts"
import { readEvent } from "../server/feed-queries.ts"
import { objectKeyQuery, objectSearchQuery } from "../server/graph-queries.ts"
import { isMissing } from "../server/problem.ts"
import { objectQuery, pendingTasksQuery } from "../server/queries.ts"
import { readRun } from "../server/request.ts"
import { runSearchQuery } from "../server/run-queries.ts"
import { outcomeText } from "../runs/run-words.ts"
import { cutText } from "../words/cut-text.ts"
import { sections } from "../settings/sections.ts"
import { type Entry, fitting, inOrder, isId } from "./entries.ts"

export interface Found {
  readonly entries: ReadonlyArray<Entry>
  readonly isSearching: boolean
  /** What the search failed with, if it did. */
  readonly error: unknown
}

/** `typed` is what stands in the field, `settled` what stood there when nobody typed. */
export const useEntries = (typed: string, settled: string): Found => {
  const { project } = useConsole()
  const words = settled.trim()
  const wordsOfObjects = beginningOf(words, limits.maxSearchCharacters)
  const agents = useQuery(agentsQuery(project.id))
  const tasks = useQuery(pendingTasksQuery(project.id))
  const conversations = useQuery(conversationsQuery(project.id))
  const objects = useQuery({
    ...objectSearchQuery(project.id, wordsOfObjects, limits.rowsPerPage),
    enabled: words !== "" && !isId(words)
  })
  // Among many that have the words, the one that is named so may be on a later page.
  const keyed = useQuery({
    ...objectKeyQuery(project.id, wordsOfObjects, limits.paletteRows),
    enabled: words !== "" && !isId(words)
  })
  const runs = useQuery({
    ...runSearchQuery(project.id, wordsOfObjects, limits.paletteRows),
    enabled: words !== "" && !isId(words)
  })
  const byId = useById(project.id, words)
  const open = useOpeners()
  const known: ReadonlyArray<Entry> = [
    ...ownEntries(open),
    ...(agents.data?.items ?? []).map(({ id, name }) => ({
      id,
      group: "Agents",
      title: name,
      hint: "agent",
      open: () => open.agent(id)
    })),
    ...(tasks.data?.tasks ?? []).map(({ id, number, title }) => ({
      id,
      group: "Tasks",
      title,
      hint: `#${number}`,
      open: () => open.task(id)
    })),
    ...(conversations.data?.items ?? []).map(({ id, title }) => ({
      id,
      group: "Conversations",
      title: title ?? "Untitled",
      hint: "conversation",
      open: () => open.conversation(id)
    }))
  ]
  const items = [...(keyed.data?.items ?? []), ...(objects.data?.items ?? [])]
  const found = (words === "" ? [] : items).map(({ id, key, type }) => ({
    id,
    group: "Objects",
    title: key ?? id,
    hint: type,
    open: () => open.object(id)
  }))
  // The server found them by what they say, so that their agent's name need not have the words.
  const said = (words === "" ? [] : (runs.data?.items ?? [])).map((run) => ({
    id: run.id,
    group: "Runs",
    title: cutText(outcomeText(run), 1, limits.maxPaletteCharacters),
    hint: run.agentName,
    open: () => open.run(run.id)
  }))
  return {
    entries: [
      ...exactEntries(byId, open),
      ...inOrder(fitting(known, typed, limits.paletteRows), found, said, words, limits.paletteRows)
    ],
    isSearching:
      objects.isFetching || keyed.isFetching || runs.isFetching || byId.isSearching || typed.trim() !== words,
    error: objects.error ?? keyed.error ?? runs.error
  }
}

/** What has the id that was typed. */
const exactEntries = (
  { event, object, run }: Pick<ReturnType<typeof useById>, "event" | "object" | "run">,
  open: ReturnType<typeof useOpeners>
): ReadonlyArray<Entry> => [
  ...(run
    ? [{ id: run.id, group: "Runs", title: run.agentName, hint: run.id, open: () => open.run(run.id) }]
    : []),
  ...(object
    ? [
        {
          id: object.id,
          group: "Objects",
          title: object.key ?? object.id,
          hint: object.type,
          open: () => open.object(object.id)
        }
      ]
    : []),
  ...(event
    ? [
        {
          id: event.id,
          group: "Events",
          title: `${event.objectType} ${subjectOf(event)}`,
          hint: event.type,
          open: () => open.event(event.id)
        }
      ]
    : [])
]

/** What the console itself has: its pages, their sections, and what can be done anywhere. */
const ownEntries = (open: ReturnType<typeof useOpeners>): ReadonlyArray<Entry> => [
  ...pages.map(({ to, title }) => ({
    id: to,
    group: "Pages",
    title,
    hint: "",
    open: () => open.page(to)
  })),
  ...sections.map(({ id, title }) => ({
    id: `settings ${id}`,
    group: "Settings",
    title,
    hint: "settings",
    open: () => open.section(id)
  })),
  {
    id: "new agent",
    group: "Commands",
    title: "New agent",
    hint: "",
    open: () => open.page("/agents/new")
  },
  { id: "sign out", group: "Commands", title: "Sign out", hint: "", open: open.signOut }
]

/** What has exactly this id; null where there is none. */
const useById = (projectId: string, words: string) => {
  const isAsked = isId(words)
  const id = words.trim().toLowerCase()
  const run = useQuery({
    queryKey: [projectId, "run-or-none", id],
    queryFn: ({ signal }) => Effect.runPromise(orNone(readRun(projectId, id)), { signal }),
    enabled: isAsked
  })
  const object = useQuery({ ...objectQuery(projectId, id), enabled: isAsked })
  const event = useQuery({
    queryKey: [projectId, "event-or-none", id],
    queryFn: ({ signal }) => Effect.runPromise(orNone(readEvent(projectId, id)), { signal }),
    enabled: isAsked
  })
  return {
    run: isAsked ? run.data : null,
    object: isAsked ? object.data : null,
    event: isAsked ? event.data : null,
    isSearching: run.isFetching || object.isFetching || event.isFetching
  }
}

const orNone = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A | null, E> =>
  Effect.catchIf(read, isMissing, () => Effect.succeed(null))

const useOpeners = () => {
  const navigate = useNavigate()
  const { signOut } = useSignOut()
  return {
    page: (to: (typeof pages)[number]["to"] | "/agents/new") => navigate({ to }),
    agent: (agentId: string) => navigate({ to: "/agents/$agentId", params: { agentId } }),
    task: (taskId: string) => navigate({ to: "/tasks/$taskId", params: { taskId } }),
    conversation: (conversationId: string) =>
      navigate({ to: "/chat/$conversationId", params: { conversationId } }),
    object: (objectId: string) => navigate({ to: "/objects/$objectId", params: { objectId } }),
    event: (eventId: string) => navigate({ to: "/events/$eventId", params: { eventId } }),
    section: (tab: string) => navigate({ to: "/settings", search: { tab } }),
    run: (runId: string) => navigate({ to: "/runs/$runId", params: { runId } }),
    signOut
  }
}
