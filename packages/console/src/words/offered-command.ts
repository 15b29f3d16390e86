/**
 * A command as it is offered to copy: with what the command line would not find by itself.
 *
 * Pure.
 */

export interface Whereabouts {
  /** The project that is meant, where the person has several. */
  readonly projectId: string | undefined
  /** Where the server answers the browser. */
  readonly origin: string
}

/** Where the command line looks for a server that nobody has named. */
const ownAddresses: ReadonlyArray<string> = ["http://127.0.0.1:4400", "http://localhost:4400"]

/** What starts a server asks none, and help is the same everywhere. */
const asksNoServer = /^npx tropism (?:start|demo)\b|--help$/

/** **Details** Only commands of `tropism` are told where to go. */
export const offeredCommand = (command: string, { projectId, origin }: Whereabouts): string =>
  !command.startsWith("npx tropism ") || asksNoServer.test(command)
    ? command
    : [
        command,
        ...(projectId === undefined ? [] : [`--project ${projectId}`]),
        ...(ownAddresses.includes(origin) ? [] : [`--url ${origin}`])
      ].join(" ")
