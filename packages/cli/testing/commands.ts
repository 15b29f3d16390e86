/**
 * Every command of the program, from the program itself.
 */
import type { Command } from "effect/cli"

export interface Listed {
  readonly command: Command.Command.Any
  /** What is typed behind `tropism`. */
  readonly path: ReadonlyArray<string>
}

/** All commands below one, each before those below it, in the order of the help. */
export const commandsOf = (
  { subcommands }: Pick<Command.Command.Any, "subcommands">,
  above: ReadonlyArray<string> = []
): ReadonlyArray<Listed> =>
  subcommands.flatMap(({ commands }) =>
    commands.flatMap((command): ReadonlyArray<Listed> => {
      const path = [...above, command.name]
      return [{ command, path }, ...commandsOf(command, path)]
    })
  )
