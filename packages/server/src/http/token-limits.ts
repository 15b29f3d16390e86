/**
 * The bounds of what lets somebody in, each with its unit in its name.
 */
export const tokenLimits = {
  /** A token that an operator chose and that is shorter can be guessed, and the server says so at its start. */
  givenMinChars: 16,
  /** Between two times at which a server says that it has its token. */
  holdIntervalMs: 60_000,
  /** The admin's token lets in for so long behind the last time that a server said that it has it. */
  unheldKeepSeconds: 300,
  sessionMaxAgeSeconds: 2_592_000,
  /** What a browser calls itself is kept so far, to tell a person's sessions apart. */
  browserNameMaxChars: 200,
  loginCodeMaxAgeSeconds: 86_400,
  /** Of a link that signs in a member. */
  memberCodeMaxAgeSeconds: 86_400,
  /** A token or session that has ended is kept for this long. */
  endedTokensKeepMs: 2_592_000_000,
  /** Tokens removed in one transaction, and transactions in one look. */
  forgetBatchTokens: 1_000,
  forgetMaxBatches: 1_000,
  /** Between two looks for tokens that ended long ago. */
  forgetTokensIntervalMs: 3_600_000,
  /** A JWT may be so long: a provider that names a person's groups in it fills some of that. */
  jwtMaxBytes: 8_192,
  /** So far a provider's clock may be ahead of ours. */
  jwtSkewSeconds: 30,
  jwtSecretMinBytes: 32,
  jwtRsaKeyMinBits: 2_048,
  jwksMaxBytes: 262_144,
  jwksTimeoutMs: 5_000,
  /** Keys are asked for anew when they are this old, and kept while nobody answers. */
  jwksMaxAgeMs: 600_000,
  /** Between two questions to a provider, whoever shows which unknown key. */
  jwksPauseMs: 30_000
} as const
