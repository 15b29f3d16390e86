/**
 * The way to every page: a list at the side, or behind a button on a narrow screen.
 */
import type { Principal } from "@tropism/api/authorization"
import { useQuery } from "@tanstack/react-query"
import { Link, useLocation } from "@tanstack/react-router"
import { Dialog } from "radix-ui"
import { type ReactNode, useRef, useState } from "react"
import { BookIcon, CrossIcon, MenuIcon } from "../parts/icons.tsx"
import { leaveEscape, useEscape } from "../parts/use-escape.ts"
import { pendingTasksQuery } from "../server/queries.ts"
import { pageIcons } from "./page-icons.tsx"
import { pageAt, pages } from "./pages.ts"
import { SignedIn } from "./sign-in.tsx"

interface NavigationProps {
  readonly projectId: string
  readonly principal: Principal
}

/** The list at the side of a wide screen. */
export const SideNavigation = (props: NavigationProps): ReactNode => (
  <aside className="sticky top-15 hidden h-[calc(100dvh-3.75rem)] w-52 shrink-0 flex-col overflow-y-auto border-r border-line px-3 pt-5 pb-6 lg:flex">
    <PageList projectId={props.projectId} />
    <Foot principal={props.principal} />
  </aside>
)

/** The same behind a button. The focus returns to the button, or goes to the page that was chosen. */
export const NavigationSheet = (props: NavigationProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  const content = useRef<HTMLDivElement>(null)
  useEscape(isOpen, content, () => setIsOpen(false))
  return (
    <Dialog.Root open={isOpen} onOpenChange={setIsOpen}>
      <Dialog.Trigger
        aria-label="All pages"
        className="-ml-2 grid size-10 shrink-0 place-items-center rounded-lg text-ink-soft hover:bg-sunken hover:text-ink lg:hidden"
      >
        <MenuIcon />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-veil" />
        <Dialog.Content
          ref={content}
          onEscapeKeyDown={leaveEscape}
          aria-describedby={undefined}
          className="enter fixed inset-y-0 left-0 z-40 flex w-72 max-w-[85vw] flex-col overflow-y-auto border-r border-line bg-canvas p-4 shadow-raised outline-none"
        >
          <div className="mb-4 flex items-center justify-between pl-3">
            <Dialog.Title className="text-lg font-semibold">Pages</Dialog.Title>
            <Dialog.Close
              aria-label="Close"
              className="grid size-9 place-items-center rounded-md text-ink-faint hover:bg-sunken hover:text-ink"
            >
              <CrossIcon />
            </Dialog.Close>
          </div>
          <PageList projectId={props.projectId} onChosen={() => setIsOpen(false)} />
          <Foot principal={props.principal} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

interface PageListProps {
  readonly projectId: string
  readonly onChosen?: () => void
}

const PageList = ({ projectId, onChosen }: PageListProps): ReactNode => {
  const present = pageAt(useLocation().pathname)
  return (
    <nav aria-label="Pages">
      <ul className="grid gap-0.5">
        {pages.map((page) => {
          const isPresent = page === present
          return (
            <li key={page.to}>
              <Link
                to={page.to}
                {...(onChosen && { onClick: onChosen })}
                {...(isPresent && { "aria-current": "page" as const })}
                className={`flex h-9 items-center gap-3 rounded-lg px-3 text-sm pointer-coarse:h-11 ${isPresent ? "bg-leaf-soft font-semibold text-leaf" : "text-ink-soft hover:bg-sunken hover:text-ink"}`}
              >
                {pageIcons[page.to]}
                <span className="grow">{page.title}</span>
                {page.to === "/" && <WaitingBadge projectId={projectId} />}
              </Link>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}

const WaitingBadge = ({ projectId }: { readonly projectId: string }): ReactNode => {
  const { data } = useQuery(pendingTasksQuery(projectId))
  if (data === undefined || data.tasks.length === 0) return null
  return (
    <span className="rounded-full bg-leaf px-1.5 text-2xs leading-5 font-semibold text-on-leaf">
      {data.tasks.length.toLocaleString()}
      {data.isWhole ? "" : "+"}
      <span className="sr-only"> waiting</span>
    </span>
  )
}

const Foot = ({ principal }: { readonly principal: Principal }): ReactNode => (
  <div className="mt-auto px-3 pt-8">
    <a
      href="/docs"
      className="flex items-center gap-2 text-xs text-ink-soft underline-offset-2 hover:text-ink hover:underline"
    >
      <BookIcon size="small" />
      API docs
    </a>
    <SignedIn principal={principal} />
  </div>
)
