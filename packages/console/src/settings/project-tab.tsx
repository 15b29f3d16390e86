/**
 * The project itself: its name, the switch that stops all its agents, and how far a chain may go.
 */
import type { Stop } from "@tropism/domain/kill-switch"
import { useQuery } from "@tanstack/react-query"
import { type Dispatch, type ReactNode, type SetStateAction, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { AskBeforeLeaving } from "../parts/ask-before-leaving.tsx"
import { Button } from "../parts/button.tsx"
import { InlineCommand } from "../parts/command.tsx"
import { Failure } from "../parts/failure.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { Skeleton } from "../parts/skeleton.tsx"
import { TimeAgo } from "../parts/time-ago.tsx"
import { useToasts } from "../parts/toasts.tsx"
import { Visible } from "../parts/visible.tsx"
import { projectsQuery } from "../server/queries.ts"
import { killSwitchQuery, projectSettingsQuery } from "../server/settings-queries.ts"
import { visibleText } from "../words/visible-text.ts"
import { ChainLimitsForm, differs, type TypedBounds } from "./chain-limits-form.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { OnlyAdmins, SectionHead } from "../parts/rows.tsx"
import { useFaultFocus } from "../parts/use-fault-focus.ts"
import { mayMakeProjects, NewProject } from "./new-project.tsx"
import { renameProject, turnKillSwitch } from "./settings-acts.ts"
import { useAct } from "../server/use-act.ts"

export const ProjectTab = (): ReactNode => {
  const { project, isAdmin, principal } = useConsole()
  const { data } = useQuery(projectSettingsQuery(project.id))
  /** What was typed and is not saved. */
  const [name, setName] = useState<string>()
  const [bounds, setBounds] = useState<TypedBounds>({})
  const isRenamed = name !== undefined && name !== project.name
  return (
    <>
      <SectionHead lead="Settings for the whole project.">
        {!isAdmin && (
          <OnlyAdmins>Only admins can rename the project, stop its agents and set its limits.</OnlyAdmins>
        )}
      </SectionHead>
      <div className="grid max-w-2xl gap-8">
        <Name typed={name} setTyped={setName} />
        <KillSwitch />
        <Bounds typed={bounds} setTyped={setBounds} />
        {mayMakeProjects(principal) && (
          <Part title="Other projects">
            <NewProject />
          </Part>
        )}
      </div>
      {/* Each part would ask for itself, one after the other. */}
      <AskBeforeLeaving isUnsaved={isRenamed || (data !== undefined && differs(bounds, data.chainLimits))} />
    </>
  )
}

const Part = ({ title, children }: { readonly title: string; readonly children: ReactNode }): ReactNode => (
  <section aria-label={title} className="grid gap-3">
    <h2 className="text-base font-semibold">{title}</h2>
    {children}
  </section>
)

interface NameProps {
  readonly typed: string | undefined
  readonly setTyped: Dispatch<SetStateAction<string | undefined>>
}

const Name = ({ typed, setTyped }: NameProps): ReactNode => {
  const { project, isAdmin } = useConsole()
  const show = useToasts()
  const rename = useAct({
    what: "Rename project",
    act: (wanted: string) => renameProject(project.id, wanted),
    touches: [projectsQuery.queryKey],
    onDone: (renamed, sent) => {
      setTyped((now) => (now === sent ? undefined : now))
      show({
        tone: "done",
        title: "Renamed",
        sentence: `New name: ${visibleText(renamed.name)}`
      })
    }
  })
  const form = useFaultFocus(rename.error)
  const name = typed ?? project.name
  const isUntouched = name === project.name
  return (
    <Part title="Name">
      {isAdmin ? (
        <form
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault()
            rename.run(name)
          }}
          className="grid gap-3"
        >
          <TextField label="Name" pointer="/name" error={rename.error} value={name} onChange={setTyped} />
          <div className="flex items-center gap-3">
            <Button type="submit" disabled={rename.isBusy || isUntouched}>
              Rename
            </Button>
          </div>
        </form>
      ) : (
        <p className="text-sm">
          <Visible text={project.name} />
        </p>
      )}
      <p className="text-xs text-ink-faint">
        URLs and tokens use the id, which does not change:{" "}
        <code className="font-mono select-all">{project.id}</code>
      </p>
    </Part>
  )
}

const KillSwitch = (): ReactNode => {
  const { project, isAdmin } = useConsole()
  const { data, error } = useQuery(killSwitchQuery(project.id))
  const [isStopping, setIsStopping] = useState(false)
  const touches = [
    [project.id, "kill-switch"],
    [project.id, "health"],
    [project.id, "runs"]
  ]
  const release = useAct({
    what: "Resume agents",
    act: () => turnKillSwitch(project.id, { stopped: false }),
    touches
  })
  const stopped = data?.stopped ?? null
  return (
    <Part title="Kill switch">
      {error !== null && <Failure error={error} hasOlder={data !== undefined} triesAgain />}
      {release.error !== null && <Failure error={release.error} />}
      {data === undefined && error === null && <Skeleton label="Loading kill switch …" />}
      {data !== undefined && stopped === null && (
        <p data-switch="off" className="text-sm">
          Agents are running. A kill switch stops all of them immediately: no runs start, agents cannot write,
          and events are queued until it is off.
        </p>
      )}
      {stopped !== null && <Stopped stop={stopped} />}
      {isAdmin && data !== undefined && (
        <div>
          {stopped?.scope === "project" ? (
            <Button weight="primary" disabled={release.isBusy} onClick={() => release.run(null)}>
              Resume agents
            </Button>
          ) : (
            <Button onClick={() => setIsStopping(true)}>Stop all agents</Button>
          )}
        </div>
      )}
      {isStopping && <StopForm touches={touches} onClose={() => setIsStopping(false)} />}
    </Part>
  )
}

const Stopped = ({ stop }: { readonly stop: Stop }): ReactNode => (
  <div
    data-switch="on"
    className="rounded-xl border border-caution-line bg-caution px-4 py-3 text-sm text-caution-ink"
  >
    <p>
      All agents {stop.scope === "server" ? "of the server" : "of the project"} were stopped by{" "}
      <Visible text={stop.stoppedBy} /> <TimeAgo instant={stop.stoppedAt} />:
    </p>
    <blockquote className="mt-1.5 border-l-2 border-caution-line pl-3 [overflow-wrap:anywhere]">
      <Visible text={stop.reason} />
    </blockquote>
    {stop.scope === "server" && (
      <p className="mt-1.5">
        Only the server's admin can resume them: <InlineCommand text="npx tropism kill-switch off --server" />
      </p>
    )}
  </div>
)

interface StopFormProps {
  readonly touches: ReadonlyArray<ReadonlyArray<unknown>>
  readonly onClose: () => void
}

const StopForm = ({ touches, onClose }: StopFormProps): ReactNode => {
  const { project } = useConsole()
  const [reason, setReason] = useState("")
  const stop = useAct({
    what: "Stop all agents",
    act: (why: string) => turnKillSwitch(project.id, { stopped: true, reason: why }),
    touches,
    onDone: onClose
  })
  return (
    <FormDialog
      title="Stop all agents of this project?"
      verb="Stop agents"
      isBusy={stop.isBusy}
      error={stop.error}
      pointers={["/reason"]}
      onSubmit={() => stop.run(reason)}
      onClose={onClose}
    >
      <p className="text-sm text-ink-soft">
        Open runs are paused and continue when the switch is off. Events are queued meanwhile.
      </p>
      <TextField
        label="Reason"
        hint="Shown to anyone who is blocked by the kill switch."
        pointer="/reason"
        error={stop.error}
        value={reason}
        onChange={setReason}
        lines={3}
        hasFirstFocus
      />
    </FormDialog>
  )
}

interface BoundsProps {
  readonly typed: TypedBounds
  readonly setTyped: Dispatch<SetStateAction<TypedBounds>>
}

const Bounds = ({ typed, setTyped }: BoundsProps): ReactNode => {
  const { project } = useConsole()
  const { data, error } = useQuery(projectSettingsQuery(project.id))
  return (
    <Part title="Chain limits">
      {error !== null && <Failure error={error} hasOlder={data !== undefined} />}
      {data !== undefined && <ChainLimitsForm limits={data.chainLimits} typed={typed} setTyped={setTyped} />}
    </Part>
  )
}
