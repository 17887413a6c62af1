package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// addGo counts a Go file.
func (t *tree) addGo(name, text string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	t.packages[path.Dir(name)] = true
	test := strings.HasSuffix(name, "_test.go")
	for _, group := range file.Comments {
		if comment := strings.TrimSpace(group.Text()); comment != "" {
			t.goComments.add(comment)
			t.told["comments"].add(comment)
		}
	}
	total, large, limit := &t.goCode, &t.largeFiles, 500
	if test {
		total, large, limit = &t.goTestCode, &t.largeTests, 800
	}
	*total += codeLines(text)
	if strings.Count(text, "\n") > limit {
		*large = append(*large, name)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			t.tests++
		}
		if !test {
			body := files.Position(f.Body.Rbrace).Line - files.Position(f.Body.Lbrace).Line - 1
			t.functions = append(t.functions, function{name + " " + f.Name.Name, max(body, 0)})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool { t.addNode(n, test); return true })
	return nil
}

func (t *tree) addNode(n ast.Node, test bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			t.told["strings"].add(n.Value)
		}
	case *ast.CallExpr:
		selector, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !test || selector.Sel.Name != "Run" || len(n.Args) != 2 {
			return
		}
		if receiver, ok := selector.X.(*ast.Ident); ok && (receiver.Name == "t" || receiver.Name == "tb") {
			t.tests++
		}
	case *ast.CompositeLit:
		// Planted bugs are rows of tables: {invariant: …, bug: …} in SQL, {bug: …, edits: …} in Go.
		keys := map[string]bool{}
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					keys[key.Name] = true
				}
			}
		}
		switch {
		case test && keys["bug"] && keys["invariant"]:
			t.plantedSQL++
		case test && keys["bug"] && keys["edits"]:
			t.plantedGo++
		}
	}
}

// codeLines counts the lines that hold a token. Each line of a raw string counts.
func codeLines(text string) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	counted := map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return len(counted)
		}
		for i := range strings.Count(literal, "\n") + 1 {
			if kind != token.SEMICOLON || literal == ";" {
				counted[file.Line(pos)+i] = true
			}
		}
	}
}
