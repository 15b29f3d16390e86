/**
 * The head of every page: which project, how much waits, whether the page is live, and the way to the rest.
 */
import type { Project } from "@tropism/api/system-api"
import { useQuery } from "@tanstack/react-query"
import { Link, useMatches, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useEffect } from "react"
import { ChevronIcon, KeyboardIcon, Mark } from "../parts/icons.tsx"
import { Visible } from "../parts/visible.tsx"
import type { StreamState } from "../server/event-stream.ts"
import { useFeedState } from "../server/feed-provider.tsx"
import { pendingTasksQuery } from "../server/queries.ts"
import { visibleText } from "../words/visible-text.ts"

interface HeaderProps {
  readonly projects: ReadonlyArray<Project>
  readonly project: Project | undefined
  /** The button that opens the list of pages where it does not stand at the side. */
  readonly navigation?: ReactNode
  readonly children?: ReactNode
}

export const Header = ({ projects, project, navigation, children }: HeaderProps): ReactNode => (
  <header className="sticky top-0 z-20 border-b border-line bg-canvas/90 backdrop-blur">
    <div className="mx-auto flex h-15 max-w-[100rem] items-center gap-2.5 px-4 sm:gap-3.5 sm:px-6">
      {navigation}
      <Link to="/" aria-label="Tropism, go to inbox" className="flex items-center gap-2.5">
        <Mark />
        <span className="hidden font-semibold tracking-tight sm:inline">Tropism</span>
      </Link>
      <span aria-hidden="true" className="text-line-strong">
        /
      </span>
      <ProjectName projects={projects} project={project} />
      <div className="ml-auto flex shrink-0 items-center gap-1 sm:gap-1.5">{children}</div>
    </div>
  </header>
)

/** One project is a name, several are a choice. */
const ProjectName = ({ projects, project }: Pick<HeaderProps, "projects" | "project">): ReactNode => {
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

/** How much waits, also in the tab's title, and whether the page hears of changes at once. */
export const Waiting = ({ project }: { readonly project: Project }): ReactNode => {
  const { data } = useQuery(pendingTasksQuery(project.id))
  const count = data?.tasks.length
  const text = count === undefined ? "…" : `${count.toLocaleString()}${data?.isWhole === false ? "+" : ""}`
  const title = useMatches().findLast(({ staticData }) => staticData.title !== undefined)?.staticData.title
  useEffect(() => {
    const page = title === undefined ? "" : `${title} · `
    document.title = `${count ? `(${text}) ` : ""}${page}${visibleText(project.name)} · Tropism`
  }, [count, text, title, project.name])
  return (
    <p className="flex items-center gap-2.5 px-2 text-sm text-ink-soft">
      <FeedDot />
      <span>
        <span data-testid="waiting-count" className="font-semibold text-ink">
          {text}
        </span>
        <span className="sr-only sm:not-sr-only"> waiting</span>
      </span>
    </p>
  )
}

const feedWords: Readonly<Record<StreamState, string>> = {
  live: "Live: changes appear immediately",
  connecting: "Connecting to the live feed",
  lost: "The live feed is interrupted; the page refreshes every few seconds"
}

/** A lost connection is also said in words. */
const FeedDot = (): ReactNode => {
  const feed = useFeedState()
  return (
    <span data-testid="feed" data-state={feed} className="flex items-center gap-1.5" title={feedWords[feed]}>
      <span role="img" aria-label={feedWords[feed]} className="relative grid size-2">
        <span
          className={`size-2 rounded-full ${feed === "live" ? "bg-leaf" : feed === "lost" ? "bg-caution-ink" : "bg-line-strong"}`}
        />
      </span>
      {feed === "lost" && (
        <span className="text-xs font-medium whitespace-nowrap text-caution-ink">Not live</span>
      )}
    </span>
  )
}

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
