/**
 * The command `tropism` with everything below it, and how a wrong invocation is answered.
 *
 * Help goes to standard output because it was asked for; a wrong invocation is
 * one sentence on standard error with the command that shows the right one.
 */
import { Console, Effect } from "effect"
import { CliOutput, Command, TerminalCapabilities } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import { agentsCommand } from "./commands/agents.ts"
import { autonomyCommand } from "./commands/autonomy.ts"
import { backtestCommand } from "./commands/backtest.ts"
import { backtestsCommand } from "./commands/backtests.ts"
import { chainCommand } from "./commands/chain.ts"
import { chatCommand } from "./commands/chat.ts"
import { conversationsCommand } from "./commands/conversations.ts"
import { contextsCommand } from "./commands/contexts.ts"
import { denialsCommand } from "./commands/denials.ts"
import { doctorCommand } from "./commands/doctor.ts"
import { dumpCommand, restoreCommand } from "./commands/dump.ts"
import { explainCommand } from "./commands/explain.ts"
import { exportCommand } from "./commands/export.ts"
import { importCommand } from "./commands/import.ts"
import { killSwitchCommand } from "./commands/kill-switch.ts"
import { linkCommand } from "./commands/link.ts"
import { membersCommand } from "./commands/members.ts"
import { mcpServersCommand } from "./commands/mcp-servers.ts"
import { migrateCommand } from "./commands/migrate.ts"
import { projectsCommand } from "./commands/projects.ts"
import { runCommand } from "./commands/run-agent.ts"
import { runsCommand } from "./commands/runs.ts"
import { demoCommand, startCommand } from "./commands/start.ts"
import { tailCommand } from "./commands/tail.ts"
import { tasksCommand } from "./commands/tasks.ts"
import { tokenCommand } from "./commands/token.ts"
import { undoCommand } from "./commands/undo.ts"
import { verifyCommand } from "./commands/verify.ts"
import { webhooksCommand } from "./commands/webhooks.ts"
import { whyCommand } from "./commands/why.ts"
import { wholeCompletions } from "./completions.ts"
import { failureText, wantsHelp, wantsJson } from "./ending.ts"
import { exitCodes } from "./exit-codes.ts"
import { renderHelp } from "./help-text.ts"
import { globalFlags } from "./settings.ts"
import { coloured, plain } from "./terminal/paint.ts"

/** The program: every command below it. */
export const tropism = Command.make("tropism").pipe(
  Command.withDescription("Agents that act on a shared knowledge graph when it changes."),
  Command.withSubcommands([
    { group: "Server", commands: [startCommand, demoCommand, migrateCommand, doctorCommand] },
    { group: "People", commands: [linkCommand, membersCommand, tokenCommand] },
    {
      group: "Graph",
      commands: [
        projectsCommand,
        importCommand,
        exportCommand,
        dumpCommand,
        restoreCommand,
        tailCommand,
        whyCommand,
        verifyCommand
      ]
    },
    {
      group: "Agents",
      commands: [
        agentsCommand,
        runCommand,
        runsCommand,
        backtestCommand,
        backtestsCommand,
        chatCommand,
        conversationsCommand,
        contextsCommand,
        webhooksCommand,
        mcpServersCommand,
        explainCommand,
        chainCommand,
        killSwitchCommand
      ]
    },
    { group: "Review", commands: [tasksCommand, undoCommand, denialsCommand, autonomyCommand] }
  ]),
  Command.withGlobalFlags(globalFlags),
  Command.withExamples([
    { command: "tropism start --demo", description: "Start a demo with a graph and agents" },
    { command: "tropism chat", description: "Chat with an agent" },
    { command: "tropism import people.csv", description: "Import objects into the graph" },
    { command: "tropism agents apply -f agents/", description: "Create or update agents from files" },
    { command: "tropism tail", description: "Follow events and runs" },
    { command: "tropism tasks", description: "Review suggestions" },
    { command: "tropism runs --json | jq '.[0]'", description: "Print any result as JSON" }
  ])
)

/** Runs one invocation. */
export const runCommandLine = (args: ReadonlyArray<string>) => {
  const command = Command.runWith(tropism, { version: packageJson.version })(withSwitches(args)).pipe(
    Effect.provideService(CliOutput.Presenter, presenter(wantsJson(args), wantsHelp(args)))
  )
  return args[0]?.startsWith("--completions") === true
    ? Effect.provideServiceEffect(command, Console.Console, wholeScript)
    : command
}

/** Prints the library's script whole. */
const wholeScript = Effect.map(Console.Console, (console): Console.Console => ({
  ...console,
  log: (script: string) => console.log(wholeCompletions(script))
}))

const switches = new Map([
  ["--json", "--json=true"],
  ["--quiet", "--quiet=true"],
  ["-q", "--quiet=true"]
])

/** The arguments with the flags that stand anywhere said whole: bare, such a flag would take a number behind it for its value. */
const withSwitches = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = args.indexOf("--")
  return args.map((arg, index) => (end === -1 || index < end ? (switches.get(arg) ?? arg) : arg))
}

/** What is said to a program that named a command which only has others below it. */
const wantsWord = (path: ReadonlyArray<string> = ["tropism"]) => ({
  message: `${path.join(" ")} needs a subcommand. Run "${path.join(" ")} --help" to see them.`,
  exitCode: exitCodes.usage
})

const presenter = (isJson: boolean, asksForHelp: boolean): CliOutput.Presenter => ({
  present: (event) => {
    if (event._tag === "Help" && isJson)
      return asksForHelp
        ? Console.log(JSON.stringify({ help: renderHelp(event.helpDoc, plain) }))
        : Console.error(failureText(wantsWord(event.helpDoc.commandPath), true))
    if (event._tag === "Help")
      return Effect.flatMap(Effect.service(TerminalCapabilities.TerminalCapabilities), ({ canColor }) =>
        Console.log(renderHelp(event.helpDoc, canColor ? coloured : plain))
      )
    if (event._tag === "Version" && isJson)
      return Console.log(JSON.stringify({ version: packageJson.version }))
    if (event._tag === "Version") return CliOutput.defaultPresenter.present(event)
    const sentences = event.errors.map((error) =>
      error.message
        .replace(/Expected: Schema validation failed: (Expected )?/, "Expected ")
        .replace(/\s*\n\s*/g, " ")
        .replace(/[^.?!]$/, "$&.")
    )
    const message = `${sentences.join(" ")} Run "${event.commandPath.join(" ")} --help" for usage.`
    return Console.error(failureText({ message, exitCode: exitCodes.usage }, isJson))
  }
})
