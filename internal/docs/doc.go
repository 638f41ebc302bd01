// Package docs holds the tests of this project's Markdown files: README.md,
// CONTRIBUTING.md, CHANGELOG.md, SECURITY.md, docs/*.md and that of examples/deploy.
//
// Every Go block compiles, every command is run and its output has the shape that
// is shown, every link leads somewhere, and the tables of options, flags, events,
// exit codes and tests agree with the code.
package docs
