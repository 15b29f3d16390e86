/**
 * What can be seen of a project's health, and what it means.
 *
 * Pure: the server reads the signs from rows, this says which of them are bad and
 * what mends them. A number that stands at its bound is "so many or more".
 */
import type { HealthFinding } from "./health.ts"
import { atLeast, counted, failing, fine, healthBounds, spanText, subject, warning } from "./health-words.ts"
import type { Stop } from "./kill-switch.ts"
import { wasReached } from "./mcp-server.ts"

/** Rows that wait, at most so many as are counted, and for how long the oldest has. */
export interface Waiting {
  readonly count: number
  readonly oldestSeconds: number
}

interface Named {
  readonly id: string
  readonly name: string
}

export interface VitalSigns {
  /** Why the server that was asked cannot do its part; null where it can. */
  readonly serverFault: string | null
  readonly stopped: Stop | null
  /** Events that no agent was told of yet. */
  readonly untold: Waiting
  /** Events that wait for a run of their agent. */
  readonly waitingEntries: number
  readonly queued: Waiting
  readonly running: number
  /** Runs whose worker has fallen silent and that nobody has taken over. */
  readonly orphaned: Waiting
  /** Schedules whose instant has passed. */
  readonly overdue: Waiting
  /** Runs that rest until a person lets them go on. */
  readonly resting: number
  /** What waits for a person to decide or answer. */
  readonly pendingTasks: number
  readonly enabledAgents: number
  /** Agents that disabled themselves, and how many they are; only so many are named. */
  readonly disabledCount: number
  readonly disabled: ReadonlyArray<Named & { readonly reason: string }>
  /** Agents that rest since the project was restored from a dump. */
  readonly atRest: ReadonlyArray<Named>
  readonly failing: ReadonlyArray<Named & { readonly failures: number; readonly disabledAfter: number }>
  /** Enabled agents whose model cannot be asked on this server. */
  readonly voiceless: ReadonlyArray<Named & { readonly why: string }>
  /** Agents with entries that became dead letters within the last day. */
  readonly deadLetters: ReadonlyArray<Named & { readonly count: number }>
  /** Providers that are away while runs of the project wait for them; the one that is away for the longest first. */
  readonly outages: ReadonlyArray<ProviderOutage>
  /** Models for which requests of the project wait on this server. */
  readonly crowded: ReadonlyArray<CrowdedModel>
  readonly mcpServers: number
  readonly silentServers: ReadonlyArray<Named & { readonly error: string }>
  readonly changedServers: ReadonlyArray<Named & { readonly tools: ReadonlyArray<string> }>
}

/** A provider that runs wait for. */
export interface ProviderOutage {
  /** The provider and its model, and those that stand in for it. */
  readonly models: string
  /** How its requests fail, in a clause. */
  readonly failure: string
  readonly since: string
  readonly seconds: number
  /** Runs of the project that wait for it. */
  readonly runs: number
  readonly nextTryAt: string
}

/** A model of which this server asks as much as it may. */
export interface CrowdedModel {
  readonly model: string
  readonly inFlight: number
  /** Requests of the project that wait until fewer are open. */
  readonly waiting: number
  readonly limit: number
  /** What the limit is unless the provider refuses requests as too many. */
  readonly most: number
}

/** Says of every sign what it means, the gravest causes first. */
export const judge = (signs: VitalSigns): ReadonlyArray<HealthFinding> => [
  ...ofServer(signs),
  ...ofSwitch(signs),
  ...ofModels(signs),
  ...ofOutages(signs),
  ...ofCrowded(signs),
  ...ofMcpServers(signs),
  ...ofAgents(signs),
  ...ofFlow(signs),
  ...ofRuns(signs),
  ...ofDeadLetters(signs)
]

const ofServer = ({ serverFault }: VitalSigns): ReadonlyArray<HealthFinding> => [
  serverFault === null
    ? fine("liveness", "server", "All parts of the server are at work.")
    : failing("liveness", "server", {
        detail: `${serverFault}.`,
        remedy: "Look into the server's log, then start the server again.",
        fix: "tropism doctor",
        subject: subject("server")
      })
]

const ofSwitch = ({ stopped }: VitalSigns): ReadonlyArray<HealthFinding> =>
  stopped === null
    ? []
    : [
        warning("flow", "kill switch", {
          detail: `All agents ${stopped.scope === "server" ? "of the server" : "of the project"} are stopped by a kill switch; events wait until they go on.`,
          said: stopped.reason,
          remedy: "Turn the kill switch off when the reason is gone.",
          fix: stopped.scope === "server" ? "tropism kill-switch off --server" : "tropism kill-switch off",
          subject: subject("killSwitch")
        })
      ]

const ofModels = ({ voiceless, enabledAgents }: VitalSigns): ReadonlyArray<HealthFinding> =>
  voiceless.length === 0
    ? enabledAgents === 0
      ? []
      : [fine("liveness", "model", "Every enabled agent has a model that can be asked.", subject("models"))]
    : voiceless.slice(0, healthBounds.namedMax).map((agent) =>
        failing("liveness", "model", {
          detail: `The agent ${agent.name} has no model that can be asked here.`,
          said: agent.why,
          remedy: "Give it another model, or give the server the key and start it again.",
          fix: `tropism agents export ${agent.name}`,
          subject: subject("agent", agent)
        })
      )

const ofOutages = ({ outages }: VitalSigns): ReadonlyArray<HealthFinding> =>
  outages.map(({ failure, models, nextTryAt, runs, seconds, since }) =>
    warning("liveness", "provider", {
      detail: `The provider of ${models} is away since ${since}, for ${spanText(seconds)}: ${failure}. ${atLeast(runs, "run")} ${runs === 1 ? "waits" : "wait"} for it and ${runs === 1 ? "goes" : "go"} on without help; one asks again at ${nextTryAt}.`,
      remedy:
        "Look at the provider's status page, its address and its rate limits, or give the agents a fallback model.",
      fix: "tropism runs --status queued",
      subject: subject("models")
    })
  )

const ofCrowded = ({ crowded }: VitalSigns): ReadonlyArray<HealthFinding> =>
  crowded.map(({ inFlight, limit, model, most, waiting }) => {
    const detail = `${counted(waiting, "request")} to ${model} ${waiting === 1 ? "waits" : "wait"} for a turn: ${counted(inFlight, "request")} of at most ${limit} ${inFlight === 1 ? "is" : "are"} open on this server.`
    return limit >= most
      ? fine("liveness", "model requests", detail, subject("models"))
      : warning("liveness", "model requests", {
          detail: `${detail} The provider refused requests as too many, so the limit is below ${most}; it grows back with answers and with time.`,
          remedy: "Ask the provider for a higher rate limit, or give some agents another model.",
          fix: "tropism runs --status running",
          subject: subject("models")
        })
  })

const ofMcpServers = (signs: VitalSigns): ReadonlyArray<HealthFinding> => {
  const { changedServers, mcpServers, silentServers } = signs
  const silent = silentServers.map((server) => {
    const about = {
      said: server.error,
      fix: `tropism mcp-servers refresh ${server.name}`,
      subject: subject("mcpServer", server)
    }
    return wasReached({ lastError: server.error })
      ? warning("liveness", "MCP server", {
          ...about,
          detail: `The MCP server ${server.name} works, without the tools that cannot be offered.`,
          remedy: "Mend these tools at the server, then look again."
        })
      : failing("liveness", "MCP server", {
          ...about,
          detail: `The MCP server ${server.name} could not be used when that was last tried.`,
          remedy: "Mend the server or its address, then test it again."
        })
  })
  const changed = changedServers.map((server) =>
    warning("liveness", "MCP server", {
      detail: `${counted(server.tools.length, "tool")} of the MCP server ${server.name} now ${server.tools.length === 1 ? "says" : "say"} something else and ${server.tools.length === 1 ? "is" : "are"} not called until somebody has looked.`,
      said: server.tools.join(", "),
      remedy: "Look at what its tools say now, and trust them again.",
      fix: `tropism mcp-servers refresh ${server.name}`,
      subject: subject("mcpServer", server)
    })
  )
  if (silent.length + changed.length > 0 || mcpServers === 0) return [...silent, ...changed]
  const detail =
    mcpServers === 1
      ? "The MCP server answered when it was asked last."
      : `All ${mcpServers} MCP servers answered when they were asked last.`
  return [fine("liveness", "MCP server", detail)]
}

const ofAgents = ({
  atRest,
  disabled,
  disabledCount,
  enabledAgents,
  failing: failed
}: VitalSigns): ReadonlyArray<HealthFinding> => {
  const gone = disabled.map((agent) =>
    failing("execution", "agent", {
      detail: `The agent ${agent.name} failed too often and disabled itself.`,
      said: agent.reason,
      remedy: "See why its runs failed, mend that, and enable it again.",
      fix: `tropism agents enable ${agent.name}`,
      subject: subject("agent", agent)
    })
  )
  const unnamed = disabledCount - disabled.length
  const more =
    unnamed <= 0
      ? []
      : [
          failing("execution", "agent", {
            detail: `And ${disabledCount >= healthBounds.countedMax ? "at least " : ""}${counted(unnamed, "more agent")} failed too often and disabled ${unnamed === 1 ? "itself" : "themselves"}.`,
            remedy: "See why their runs failed, mend that, and enable them again.",
            fix: "tropism agents",
            subject: subject("agent")
          })
        ]
  const [first] = atRest
  const resting =
    first === undefined
      ? []
      : [
          warning("execution", "agent", {
            detail: `${atRest.length === 1 ? `The agent ${first.name} is` : `${atRest.length} agents are`} disabled since the project was restored from a dump.`,
            remedy: "Enable each that is to act here, and not where the dump was taken as well.",
            fix: `tropism agents enable ${first.name}`,
            subject: subject("agent", first)
          })
        ]
  const going = failed.map((agent) =>
    warning("execution", "agent", {
      detail: `The agent ${agent.name} failed ${agent.failures} times in a row; after ${agent.disabledAfter} it disables itself.`,
      remedy: "See why its last runs failed, and mend that.",
      fix: `tropism runs --agent ${agent.name}`,
      subject: subject("agent", agent)
    })
  )
  const found = [...gone, ...more, ...resting, ...going]
  if (found.length > 0) return found
  const detail =
    enabledAgents === 0
      ? "No agent is enabled, so nothing reacts to events."
      : `${counted(enabledAgents, "agent")} ${enabledAgents === 1 ? "is" : "are"} enabled, and none fails again and again.`
  return [fine("execution", "agent", detail)]
}

const ofFlow = (signs: VitalSigns): ReadonlyArray<HealthFinding> => {
  const { overdue, pendingTasks, stopped, untold, waitingEntries } = signs
  const isLate = untold.count > 0 && untold.oldestSeconds >= healthBounds.untoldSeconds
  const isOverdue =
    stopped === null && overdue.count > 0 && overdue.oldestSeconds >= healthBounds.overdueSeconds
  return [
    isLate
      ? failing("flow", "events", {
          detail: `${atLeast(untold.count, "event")} ${untold.count === 1 ? "has" : "have"} reached no agent yet, the oldest for ${spanText(untold.oldestSeconds)}.`,
          remedy: "Look whether the server that tells events is at work; start it again if it is not.",
          fix: "tropism doctor",
          subject: subject("server")
        })
      : fine(
          "flow",
          "events",
          untold.count === 0
            ? "Every event has reached the agents."
            : `${atLeast(untold.count, "event")} ${untold.count === 1 ? "is" : "are"} on the way to the agents.`
        ),
    ...(waitingEntries === 0
      ? []
      : [
          fine(
            "flow",
            "reactions",
            `${atLeast(waitingEntries, "event")} ${waitingEntries === 1 ? "waits" : "wait"} until the agent may begin: by its limits, its delay, or in line.`
          )
        ]),
    ...(isOverdue
      ? [
          failing("flow", "schedules", {
            detail: `${atLeast(overdue.count, "schedule")} should have fired and did not, the oldest ${spanText(overdue.oldestSeconds)} ago.`,
            remedy: "Look whether the server that fires schedules is at work; start it again if it is not.",
            fix: "tropism doctor",
            subject: subject("server")
          })
        ]
      : []),
    ...(pendingTasks === 0
      ? []
      : [
          fine(
            "flow",
            "tasks",
            `${atLeast(pendingTasks, "task")} ${pendingTasks === 1 ? "waits" : "wait"} for a person in the inbox.`,
            subject("tasks")
          )
        ])
  ]
}

const ofRuns = (signs: VitalSigns): ReadonlyArray<HealthFinding> => {
  const { orphaned, queued, resting, running, stopped } = signs
  const isStuck = stopped === null && queued.count > 0 && queued.oldestSeconds >= healthBounds.queuedSeconds
  const isOrphaned = orphaned.count > 0 && orphaned.oldestSeconds >= healthBounds.orphanedSeconds
  return [
    ...(isOrphaned
      ? [
          failing("execution", "runs", {
            detail: `${atLeast(orphaned.count, "run")} lost ${orphaned.count === 1 ? "its" : "their"} worker and ${orphaned.count === 1 ? "was" : "were"} taken over by no other, the oldest ${spanText(orphaned.oldestSeconds)} ago.`,
            remedy: "Look whether any worker is at work; start a server again if none is.",
            fix: "tropism doctor",
            subject: subject("runs")
          })
        ]
      : []),
    isStuck
      ? warning("execution", "runs", {
          detail: `${atLeast(queued.count, "run")} ${queued.count === 1 ? "waits" : "wait"} for a worker, the oldest for ${spanText(queued.oldestSeconds)}, while ${counted(running, "run")} of the project ${running === 1 ? "is" : "are"} at work.`,
          remedy:
            "Wait for the runs at work, cancel what nobody needs, or start another server on the same database.",
          fix: "tropism runs --status queued",
          subject: subject("runs")
        })
      : fine(
          "execution",
          "runs",
          running + queued.count === 0
            ? "No run waits for a worker."
            : `${atLeast(running, "run")} ${running === 1 ? "is" : "are"} at work, and ${atLeast(queued.count, "run")} ${queued.count === 1 ? "waits" : "wait"} for a worker.`,
          subject("runs")
        ),
    ...(resting === 0
      ? []
      : [
          fine(
            "execution",
            "resting runs",
            `${atLeast(resting, "run")} ${resting === 1 ? "rests" : "rest"} at a limit until a person lets ${resting === 1 ? "it" : "them"} go on.`,
            subject("runs")
          )
        ])
  ]
}

const ofDeadLetters = ({ deadLetters }: VitalSigns): ReadonlyArray<HealthFinding> =>
  deadLetters.length === 0
    ? [fine("execution", "dead letters", "No event became a dead letter within the last day.")]
    : deadLetters.map((agent) =>
        warning("execution", "dead letters", {
          detail: `${atLeast(agent.count, "event")} could not be handled by the agent ${agent.name} within the last day.`,
          remedy: "See why, mend that, and let the agent try its dead letters again.",
          fix: `tropism runs --agent ${agent.name} --status failed`,
          subject: subject("deadLetters", agent)
        })
      )
