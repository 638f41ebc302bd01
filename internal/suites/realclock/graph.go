package main

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// clocks are the functions that read the real clock, or wait by it.
var clocks = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},

	"github.com/benbjohnson/clock": {"New"},
}

// graph is where the functions of a package are named. A holder is what a function is called by: the object of a declared
// function, a parameter or a variable, or the name of a field or method, since a call by an interface doesn't show whose it is.
// That of a method is its type, too: it runs where a value of that is made.
type graph struct {
	info     *types.Info
	decls    map[any]*ast.FuncDecl
	named    map[any][]place // by holder
	literals map[*ast.FuncLit]place
	uses     map[*ast.SelectorExpr]place // of clocks
	proved   map[ast.Node]bool           // functions that ask to be left out of the gate
	real     map[any]bool                // holders and literals that may run outside a bubble
}

// place is the function or type in which something stands, if any, and the holder that it is given to, if that is known.
type place struct {
	in ast.Node
	to any
}

// bubble holds what synctest.Test runs.
const bubble = "synctest.Test"

func newGraph(info *types.Info, files []*ast.File) *graph {
	g := &graph{info, map[any]*ast.FuncDecl{}, map[any][]place{}, map[*ast.FuncLit]place{}, map[*ast.SelectorExpr]place{}, map[ast.Node]bool{}, map[any]bool{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if _, twice := g.decls[g.holder(f.Name)]; twice {
					f = nil // Methods of two types: a call doesn't show whose parameters it has.
				}
				g.decls[g.holder(d.(*ast.FuncDecl).Name)] = f
			}
		}
	}
	for _, f := range files {
		ast.PreorderStack(f, nil, g.see)
	}
	for known := -1; known < len(g.real); { // All runs in bubbles, until a place shows otherwise.
		known = len(g.real)
		for h, places := range g.named {
			if slices.ContainsFunc(places, func(p place) bool { return !g.safe(p) }) {
				g.real[h] = true
			}
		}
		for n, p := range g.literals {
			if !g.safe(p) {
				g.real[n] = true
			}
		}
	}
	return g
}

// see notes what a node names, and reports whether its parts are to be seen.
func (g *graph) see(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncType:
		return false // What a signature names isn't made there.
	case *ast.FieldList:
		_, receiver := stack[len(stack)-1].(*ast.FuncDecl)
		return !receiver
	case *ast.StarExpr:
		return !g.info.Types[n.X].IsType()
	case *ast.FuncLit:
		g.literals[n] = g.at(n, stack)
	case *ast.SelectorExpr:
		path, name := g.imported(n)
		switch p := g.at(n, stack); {
		case slices.Contains(clocks[path], name):
			g.uses[n] = p
		case len(stack) > 4 && strings.HasSuffix(path, "/internal/suites") && slices.Contains([]string{"Prove", "RealTime", "SecondPath"}, name):
			g.proved[p.in] = stack[len(stack)-4] == p.in // a statement of its body, not of a branch
		case path == "" && !assigned(n, stack):
			g.named[name] = append(g.named[name], p)
		}
	case *ast.Ident:
		if o := g.info.Uses[n]; o != nil && g.holder(n) == any(o) && !assigned(n, stack) {
			g.named[o] = append(g.named[o], g.at(n, stack))
		}
	}
	return true
}

func assigned(n ast.Expr, stack []ast.Node) bool {
	p, ok := stack[len(stack)-1].(*ast.AssignStmt)
	return ok && slices.Contains(p.Lhs, n)
}

// safe reports whether what stands in a place runs in a bubble, or in what the gate doesn't run or only measures.
func (g *graph) safe(p place) bool {
	if g.proved[p.in] || g.holds(p.to) {
		return true
	}
	switch n := p.in.(type) {
	case *ast.FuncLit:
		return !g.real[n]
	case *ast.TypeSpec:
		return g.holds(g.holder(n.Name))
	case *ast.FuncDecl:
		if n.Recv != nil {
			t := n.Recv.List[0].Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			if id, ok := t.(*ast.Ident); ok && g.holds(g.holder(id)) {
				return true
			}
		}
		return strings.HasPrefix(n.Name.Name, "Benchmark") || g.holds(g.holder(n.Name))
	}
	return false
}

// holds reports whether all that a holder holds runs in bubbles. What has an exported name may be called from anywhere, and
// what nobody names is no helper.
func (g *graph) holds(h any) bool {
	name, _ := h.(string)
	if o, ok := h.(types.Object); ok {
		name = o.Name()
	}
	return name == bubble || len(g.named[h]) > 0 && !g.real[h] && !ast.IsExported(name)
}

// holder is what an identifier names.
func (g *graph) holder(id *ast.Ident) any {
	o := g.info.ObjectOf(id)
	v, _ := o.(*types.Var)
	f, _ := o.(*types.Func)
	if o == nil || v != nil && v.IsField() || f != nil && f.Signature().Recv() != nil {
		return id.Name
	}
	return o
}

// at is the place of an expression.
func (g *graph) at(n ast.Expr, stack []ast.Node) (p place) {
	for _, above := range stack {
		switch above.(type) {
		case *ast.FuncDecl, *ast.FuncLit, *ast.TypeSpec:
			p.in = above
		}
	}
	parent, above := stack[len(stack)-1], stack[:len(stack)-1]
	switch in := parent.(type) {
	case *ast.CallExpr:
		if i := slices.Index(in.Args, n); i >= 0 {
			p.to = g.parameter(in.Fun, i)
		}
	case *ast.AssignStmt:
		if i := slices.Index(in.Rhs, n); i >= 0 {
			p.to = g.target(in.Lhs[i])
		}
	case *ast.KeyValueExpr:
		if key, ok := in.Key.(*ast.Ident); ok && n == in.Value {
			p.to, _ = g.holder(key).(string)
		}
		n, parent, above = in, above[len(above)-1], above[:len(above)-1]
	}
	list, ok := parent.(*ast.CompositeLit)
	if !ok || !slices.Contains(list.Elts, n) {
		return p
	}
	if t := g.info.TypeOf(list); t != nil {
		if s, ok := t.Underlying().(*types.Struct); ok && parent == stack[len(stack)-1] {
			p.to = s.Field(slices.Index(list.Elts, n)).Name()
		}
	}
	if loop, ok := above[len(above)-1].(*ast.RangeStmt); ok && loop.Value != nil {
		p.to = g.target(loop.Value)
	}
	return p
}

// target is what is assigned to.
func (g *graph) target(n ast.Expr) any {
	switch n := n.(type) {
	case *ast.Ident:
		return g.holder(n)
	case *ast.SelectorExpr:
		return n.Sel.Name
	}
	return nil
}

// parameter is what an argument of a call becomes.
func (g *graph) parameter(called ast.Expr, i int) any {
	if f, ok := called.(*ast.SelectorExpr); ok {
		if path, name := g.imported(f); path == "testing/synctest" && name == "Test" {
			return bubble
		}
		called = f.Sel
	}
	if f, ok := called.(*ast.Ident); ok && g.decls[g.holder(f)] != nil {
		var names []*ast.Ident
		for _, field := range g.decls[g.holder(f)].Type.Params.List {
			names = append(names, field.Names...)
		}
		if i < len(names) {
			return g.holder(names[i])
		}
	}
	return nil
}

// imported is the path of a package, or nothing, and a name in it.
func (g *graph) imported(n *ast.SelectorExpr) (path, name string) {
	if id, ok := n.X.(*ast.Ident); ok {
		if p, ok := g.info.Uses[id].(*types.PkgName); ok {
			path = p.Imported().Path()
		}
	}
	return path, n.Sel.Name
}
