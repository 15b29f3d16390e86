/** The part of `oidc-provider` that stories use; the package has no types of its own. */
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http"

  interface Token {
    readonly accountId: string
    readonly clientId: string
    readonly grantId: string
    readonly aud: string | ReadonlyArray<string>
    readonly scope: string
    readonly isExpired: boolean
  }

  interface Interaction {
    readonly prompt: { readonly name: string; readonly details: Readonly<Record<string, unknown>> }
    readonly params: Readonly<Record<string, string>>
    readonly grantId?: string
    readonly session?: { readonly accountId: string }
  }

  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>)
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: Record<string, unknown>,
      options?: { readonly mergeWithLastSubmission?: boolean }
    ): Promise<void>
    on(event: string, listener: (...args: ReadonlyArray<unknown>) => void): this
    readonly AccessToken: { find(value: string): Promise<Token | undefined> }
    readonly Grant: {
      new (of: { readonly accountId: string; readonly clientId: string }): {
        addOIDCScope(scope: string): void
        addResourceScope(resource: string, scope: string): void
        save(): Promise<string>
      }
      find(id: string): Promise<{ destroy(): Promise<void> } | undefined>
    }
    readonly RefreshToken: { revokeByGrantId(grantId: string): Promise<void> }
  }
}
