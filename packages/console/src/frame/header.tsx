/**
 * The head of every page: which project, how much waits, whether the page is live, and where the rest is.
 */
import type { Project } from "@tropism/api/system-api"
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useEffect } from "react"
import { BookIcon, ChevronIcon, KeyboardIcon, Mark } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import type { FeedState } from "../server/live-feed.ts"
import { pendingTasksQuery } from "../server/queries.ts"
import { visibleText } from "../words/visible-text.ts"

interface HeaderProps {
  readonly projects: ReadonlyArray<Project>
  readonly project: Project | undefined
  readonly children?: ReactNode
}

export const Header = ({ projects, project, children }: HeaderProps): ReactNode => (
  <header className="sticky top-0 z-20 border-b border-line bg-canvas/90 backdrop-blur">
    <div className="mx-auto flex h-15 max-w-[80rem] items-center gap-2.5 px-4 sm:gap-3.5 sm:px-8">
      <Link
        to="/"
        search={(search) => search}
        aria-label="Tropism, to the inbox"
        className="flex items-center gap-2.5"
      >
        <Mark />
        <span className="hidden font-semibold tracking-tight sm:inline">Tropism</span>
      </Link>
      <span aria-hidden="true" className="text-line-strong">
        /
      </span>
      <ProjectName projects={projects} project={project} />
      <div className="ml-auto flex shrink-0 items-center gap-1 sm:gap-1.5">
        {children}
        <a
          href="/docs"
          className="flex h-9 items-center gap-2 rounded-lg px-2.5 text-sm text-ink-soft hover:bg-sunken hover:text-ink"
        >
          <BookIcon />
          <span className="sr-only sm:not-sr-only">API docs</span>
        </a>
      </div>
    </div>
  </header>
)

/** One project is a name, several are a choice. */
const ProjectName = ({ projects, project }: Omit<HeaderProps, "children">): ReactNode => {
  const navigate = useNavigate()
  if (projects.length <= 1) {
    return (
      <span className="min-w-0 truncate text-sm font-medium">
        {project ? <Visible text={project.name} /> : "No project"}
      </span>
    )
  }
  return (
    <div className="relative min-w-0">
      <select
        aria-label="Project"
        value={project?.id ?? ""}
        onChange={(event) => {
          navigate({ to: "/", search: { project: event.target.value } })
        }}
        className="h-9 w-full max-w-56 appearance-none truncate rounded-lg bg-transparent pr-8 pl-2.5 text-sm font-medium hover:bg-sunken"
      >
        {!project && <option value="">Choose a project</option>}
        {projects.map(({ id, name }) => (
          <option key={id} value={id}>
            {visibleText(name)}
          </option>
        ))}
      </select>
      <ChevronIcon
        size="small"
        className="pointer-events-none absolute top-1/2 right-2.5 -translate-y-1/2 rotate-90 text-ink-faint"
      />
    </div>
  )
}

interface WaitingProps {
  readonly project: Project
  readonly feed: FeedState
}

/** How much waits, also in the tab's title, and whether the page hears of changes at once. */
export const Waiting = ({ project, feed }: WaitingProps): ReactNode => {
  const { data } = useQuery(pendingTasksQuery(project.id))
  const count = data?.tasks.length
  const text = count === undefined ? "…" : `${count.toLocaleString()}${data?.isWhole === false ? "+" : ""}`
  useEffect(() => {
    document.title = `${count ? `(${text}) ` : ""}${visibleText(project.name)} · Tropism`
  }, [count, text, project.name])
  return (
    <p className="flex items-center gap-2.5 px-2 text-sm text-ink-soft">
      <FeedDot feed={feed} />
      <span>
        <span className="font-semibold text-ink">{text}</span>
        <span className="sr-only sm:not-sr-only"> waiting</span>
      </span>
    </p>
  )
}

const feedWords: Readonly<Record<FeedState, string>> = {
  live: "Live: changes appear at once",
  connecting: "Connecting to the live feed",
  lost: "The live feed is interrupted; the page is read again every few seconds"
}

const FeedDot = ({ feed }: { readonly feed: FeedState }): ReactNode => (
  <span role="img" aria-label={feedWords[feed]} title={feedWords[feed]} className="relative grid size-2">
    <span
      className={`size-2 rounded-full ${feed === "live" ? "bg-leaf" : feed === "lost" ? "bg-caution-ink" : "bg-line-strong"}`}
    />
  </span>
)

export const KeysButton = ({ onOpen }: { readonly onOpen: () => void }): ReactNode => (
  <button
    type="button"
    onClick={onOpen}
    aria-label="Keyboard shortcuts"
    title="Keyboard shortcuts (?)"
    className="hidden size-9 place-items-center rounded-lg text-ink-soft hover:bg-sunken hover:text-ink hover-device:grid"
  >
    <KeyboardIcon />
  </button>
)
