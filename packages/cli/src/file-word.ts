/**
 * Flags and arguments that name a file or a folder, so that a shell offers files for them.
 *
 * The library's own paths become absolute and are looked for: here a word stays
 * what was typed, `-` among them, and whoever opens it says what is wrong.
 */
import { Argument, Flag, type Param, Primitive } from "effect/cli"

/** A text that completions take for a path. */
const pathText: Primitive.Primitive<string> = Object.assign(
  Object.create(Object.getPrototypeOf(Primitive.String)),
  Primitive.String,
  { _tag: "Path", pathType: "either" }
)

export const fileFlag = (name: string): Flag.Flag<string> => asPath(Flag.String(name))

export const fileArgument = (name: string): Argument.Argument<string> => asPath(Argument.String(name))

const asPath = <P extends Param.Param<Param.ParamKind, string>>(param: P): P =>
  Object.assign(Object.create(Object.getPrototypeOf(param)), param, { primitiveType: pathText })
