/**
 * What stands around every page: who is signed in, which project, the header and the way to all pages.
 *
 * A page inside it may count on a session and a project; without either, the
 * frame says what to do instead.
 */
import { type Principal, type Role, roleIn } from "@tropism/api/authorization"
import type { Project } from "@tropism/api/system-api"
import { useQuery } from "@tanstack/react-query"
import { Link, Outlet, useLocation, useMatches, useNavigate, useSearch } from "@tanstack/react-router"
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react"
import { KeyMapDialog } from "../keys/key-map-dialog.tsx"
import { KeyMapContext, useNewKeyMap } from "../keys/key-map.ts"
import { useJumps } from "../keys/use-jumps.ts"
import { useTakenAway } from "../keys/use-taken-away.ts"
import { Command } from "../parts/command.tsx"
import { Mark } from "../parts/icons.tsx"
import { ToastsProvider } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { failureSentence, isUnauthorized } from "../server/problem.ts"
import { principalQuery, projectsQuery } from "../server/queries.ts"
import { FeedProvider } from "../server/feed-provider.tsx"
import { ConsoleContext, type ConsoleState } from "./console-context.tsx"
import { Header, KeysButton, Waiting } from "./header.tsx"
import { preloadParts } from "../parts/lazy-part.tsx"
import { OpenSecret } from "../parts/open-secret.ts"
import { NavigationSheet, SideNavigation } from "./navigation.tsx"
import { consoleKeys, pageAt, pages } from "./pages.ts"
import { PaletteDoor } from "./palette-door.tsx"
import { RunsAtWork } from "./runs-at-work.tsx"
import { SignIn } from "./sign-in.tsx"
import { StopStrip } from "./stop-strip.tsx"
import { useKeptFocus } from "./use-kept-focus.ts"

export const ConsoleFrame = (): ReactNode => {
  const principal = useQuery(principalQuery)
  const projects = useQuery({ ...projectsQuery, enabled: principal.isSuccess })
  const { project: wanted } = useSearch({ from: "__root__" })
  // Nothing but the root has it.
  const isUnknownAddress = useMatches({ select: (matches) => matches.length === 1 })
  const error = principal.error ?? (projects.data ? null : projects.error)
  const isOut = useSignedOut(isUnauthorized(error), principal.data !== undefined && !isUnauthorized(error))
  const [hasOpenSecret, tellSecret] = useState(false)
  if (isOut) return <SignIn hadOpenSecret={hasOpenSecret} />
  if (error && !principal.data)
    return (
      <Centred fault="noAnswer" title="No answer">
        {failureSentence(error)} Trying again.
      </Centred>
    )
  if (!principal.data || !projects.data) return <Opening />
  const all = projects.data.items
  const project =
    wanted === undefined ? (all.length === 1 ? all[0] : undefined) : all.find(({ id }) => id === wanted)
  if (!project && isUnknownAddress) return <NoSuchPage />
  if (!project) return <ProjectChoice projects={all} wanted={wanted} advice={principal.data.advice} />
  // Nothing that one person has open, and nothing that they were told, is there for the next.
  const { userId } = principal.data
  return (
    <OpenSecret value={tellSecret}>
      <ProjectFrame key={userId} projects={all} project={project} principal={principal.data} />
    </OpenSecret>
  )
}

/** While it is asked anew who one is, whoever was signed out still is: the token that is being pasted stays. */
const useSignedOut = (isRefused: boolean, isKnown: boolean): boolean => {
  const [isOut, setIsOut] = useState(false)
  if (isRefused && !isOut) setIsOut(true)
  if (isKnown && isOut) setIsOut(false)
  return isOut
}

interface ProjectFrameProps {
  readonly projects: ReadonlyArray<Project>
  readonly project: Project
  readonly principal: Principal
}

/** The roles that the server lets take back what agents did. */
const reviewers: ReadonlyArray<Role> = ["reviewer", "admin"]
/** The roles that the server lets change the graph, and so decide what agents suggest and answer what they ask. */
const editors: ReadonlyArray<Role> = ["editor", ...reviewers]

const ProjectFrame = ({ projects, project, principal }: ProjectFrameProps): ReactNode => {
  const role = roleIn(principal, project.id) ?? "viewer"
  const keyMap = useNewKeyMap()
  useEffect(() => {
    void preloadParts()
  }, [])
  const state = useMemo(
    () => ({
      project,
      principal,
      role,
      canAnswer: editors.includes(role),
      canTakeBack: reviewers.includes(role),
      isAdmin: role === "admin",
      keyMap
    }),
    [project, principal, role, keyMap]
  )
  return (
    <KeyMapContext value={keyMap}>
      <ConsoleContext value={state}>
        <ToastsProvider>
          <FeedProvider key={project.id} projectId={project.id}>
            <a
              href="#content"
              className="sr-only z-50 rounded-lg bg-surface px-4 py-2 text-sm shadow-raised focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
            >
              Skip to content
            </a>
            <Header
              projects={projects}
              project={project}
              navigation={<NavigationSheet projectId={project.id} principal={principal} />}
            >
              <Waiting project={project} />
              <RunsAtWork projectId={project.id} />
              <PaletteDoor />
              <KeysButton onOpen={keyMap.open} />
            </Header>
            <StopStrip projectId={project.id} />
            <div className="mx-auto flex max-w-[100rem]">
              <SideNavigation projectId={project.id} principal={principal} />
              <Content state={state} />
            </div>
            <KeyMapDialog own={consoleKeys} />
          </FeedProvider>
        </ToastsProvider>
      </ConsoleContext>
    </KeyMapContext>
  )
}

/** The page itself. Another page begins at its top, with the focus on its content. */
const Content = ({ state }: { readonly state: ConsoleState }): ReactNode => {
  const { project, role, canAnswer, canTakeBack } = state
  const navigate = useNavigate()
  useTakenAway()
  useJumps((letter) => {
    const page = pages.find((page) => page.letter === letter)
    if (page !== undefined) navigate({ to: page.to })
  })
  const content = useRef<HTMLElement>(null)
  useKeptFocus(content)
  const page = pageAt(useLocation().pathname)
  const before = useRef(page)
  useEffect(() => {
    if (before.current === page) return
    before.current = page
    content.current?.focus({ preventScroll: true })
  }, [page])
  return (
    <main
      id="content"
      ref={content}
      tabIndex={-1}
      key={project.id}
      className="min-w-0 grow px-4 pt-8 pb-32 outline-none sm:px-8"
    >
      {!canTakeBack && (
        <p
          data-role={role}
          className="mb-6 rounded-xl border border-line bg-sunken px-4 py-3 text-sm text-ink-soft"
        >
          Your role is {role}:{" "}
          {canAnswer
            ? "you can edit the graph and review suggestions. Reviewers can undo agents' changes."
            : "you have read access. Editors can review suggestions."}
        </p>
      )}
      <Outlet />
    </main>
  )
}

interface ProjectChoiceProps {
  readonly projects: ReadonlyArray<Project>
  readonly wanted: string | undefined
  /** What somebody does who is nobody's member. */
  readonly advice: string | undefined
}

const ProjectChoice = ({ projects, wanted, advice }: ProjectChoiceProps): ReactNode => (
  <>
    <Header projects={projects} project={undefined} />
    <main className="mx-auto max-w-md px-4 py-16">
      <h1 className="text-xl font-semibold">
        {projects.length === 0 ? "No projects yet" : "Choose a project"}
      </h1>
      {wanted !== undefined && (
        <p className="mt-2 text-sm text-caution-ink">
          The project in this address does not exist, or you are not a member.
        </p>
      )}
      {projects.length === 0 && advice !== undefined ? (
        <p className="mt-2 text-sm text-ink-soft">{advice}.</p>
      ) : projects.length === 0 ? (
        <div className="mt-2">
          <p className="mb-5 text-sm text-ink-soft">Start with a demo project that has agents and data:</p>
          <Command text="npx tropism demo" />
        </div>
      ) : (
        <ul className="mt-6 grid gap-2">
          {projects.map(({ id, name }) => (
            <li key={id}>
              <Link
                to="."
                search={{ project: id }}
                className="block rounded-xl border border-line bg-surface px-4 py-3 font-medium shadow-card hover:border-line-strong"
              >
                <Visible text={name} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </main>
  </>
)

const Opening = (): ReactNode => (
  <div role="status" className="grid min-h-dvh place-items-center">
    <span className="sr-only">Opening …</span>
    <Mark className="pulse-dot size-10" />
  </div>
)

interface CentredProps {
  readonly fault: "noAnswer" | "noSuchPage" | "failed"
  readonly title: string
  readonly children: ReactNode
}

/** No screen has the address, whichever project is shown. */
export const NoSuchPage = (): ReactNode => (
  <Centred fault="noSuchPage" title="Page not found">
    <Link to="/" className="font-medium text-leaf underline-offset-2 hover:underline">
      Go to inbox
    </Link>
  </Centred>
)

export const Centred = ({ fault, title, children }: CentredProps): ReactNode => (
  <main role="alert" data-fault={fault} className="mx-auto grid min-h-dvh max-w-sm content-center gap-2 px-5">
    <Mark className="mb-3 size-10" />
    <h1 className="text-xl font-semibold">{title}</h1>
    <p className="text-sm text-ink-soft">{children}</p>
  </main>
)
