/**
 * What is said by a command that prints as it goes and does nothing else.
 *
 * It ends at once when the reader of its output has seen enough (`| head`): the
 * rest would be for nobody. Every other command then prints no more and goes on
 * to its own end and exit code, so that nothing stays half done.
 */
import { Context, Effect } from "effect"

/** Hears that a command has begun that does nothing but print. */
export class PrintingBegan extends Context.Reference<() => void>("@tropism/cli/PrintingBegan", {
  defaultValue: () => () => {}
}) {}

/** Says so; before the first that is printed. */
export const onlyPrinting: Effect.Effect<void> = Effect.map(PrintingBegan, (began) => began())
