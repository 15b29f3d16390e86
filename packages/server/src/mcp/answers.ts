/**
 * Answers that the door gives before any server of a caller is asked.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What concerns the request as such (who, where, how large) is told by a problem
 * document as at every other door; what concerns the message, by a JSON-RPC error.
 */
import type { InputFault } from "@tropism/api/problems"

/** A JSON-RPC error that belongs to no message that could be read. */
export const rpcFault = (
  status: number,
  code: number,
  message: string,
  errors?: ReadonlyArray<InputFault>,
  headers: Record<string, string> = {}
): Response =>
  Response.json(
    {
      jsonrpc: "2.0",
      error: { code, message, ...(errors === undefined ? {} : { data: { errors } }) },
      id: null
    },
    { status, headers }
  )
