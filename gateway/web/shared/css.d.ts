/** Styles that a script imports go into the style sheet of its page. */
declare module "*.css" {}
