/**
 * Tells TypeScript that style sheets may be imported; the bundler turns them into files of their own.
 */
declare module "*.css"
