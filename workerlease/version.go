package workerlease

import "runtime/debug"

// modulePath finds the module's own version in a program's build information.
const modulePath = "github.com/slotlease/slotlease"

// released is set by the linker in the programs that are released: they are built in the module's own tree, where the build
// information has no version.
var released string

// Version is the version of this module that the program was built with:
// "(devel)" if it was built in the module's own tree, but for a release.
func Version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == modulePath && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == modulePath {
			return d.Version
		}
	}
	return "(devel)"
}
