/**
 * Templates that stand alone: the tags that read another template are no tags here.
 *
 * Refused when a template is parsed, whether the tag names a file or computes
 * the name, so that a save says it and not a run.
 */
import type { Liquid } from "liquidjs"

/** Refuses every tag of an engine that would read another template. */
export const standingAlone = (engine: Liquid): Liquid => {
  for (const tag of ["include", "render", "layout"])
    engine.registerTag(tag, {
      parse: () => {
        throw new Error(
          `{% ${tag} %} would read another template, and there is none to read: write its text here instead`
        )
      },
      render: () => ""
    })
  return engine
}
