/** Every format that the wire tests speak. */
import { anthropicMessages } from "./anthropic-messages.ts"
import { bedrock } from "./bedrock.ts"
import { gemini, geminiOnVertex } from "./gemini.ts"
import { mistral } from "./mistral.ts"
import { azureChat, openaiChat, openaiCompatible, openrouterChat } from "./openai-chat.ts"
import { azureResponses, openaiResponses } from "./openai-responses.ts"
import type { WireFormat } from "./wire-format.ts"

export const formats: ReadonlyArray<WireFormat> = [
  openaiChat,
  openaiResponses,
  anthropicMessages,
  gemini,
  geminiOnVertex,
  azureChat,
  azureResponses,
  bedrock,
  mistral,
  openrouterChat,
  openaiCompatible
]
