/**
 * The guard of a simulation: a script that judges, and the models among which agents find it.
 *
 * A definition names a guard and cannot hold its script: it says that a provider has it, and here it is found by its name.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import { Option } from "effect"
import type { Models } from "../src/models/models.ts"

export const guardName = "warden"

/** It lets most pass, flags some, says of others what nobody can read, and sometimes cannot be asked. */
const guard: ModelConfig = {
  provider: "scripted",
  name: guardName,
  script: {
    rules: [
      { when: 'message contains "double"', say: "FLAGGED: it is about a double" },
      { when: 'message contains "relate"', say: "Well, that depends." },
      { when: 'message contains "silent"', fault: { kind: "error", message: "The guard is not there" } },
      { say: "SAFE", latencyMs: 200 }
    ]
  }
}

/** The models, with the guard among them. */
export const withGuard = (models: Models["Service"]): Models["Service"] => ({
  ...models,
  resolve: (choice) =>
    choice.model === null &&
    Option.exists(choice.settings?.primary ?? Option.none(), ({ name }) => name === guardName)
      ? models.resolve({ agentName: choice.agentName, model: guard })
      : models.resolve(choice)
})
