// Command dependencies describes the modules that the programs are built from. Run it in the root of the repository.
//
//	dependencies notices        writes THIRD_PARTY_NOTICES: each module with the text of its license
//	dependencies sbom PROGRAM   prints a CycloneDX bill of materials of a built program
package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
)

const noticesFile = "THIRD_PARTY_NOTICES"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dependencies:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "notices":
		text, err := notices(".")
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(noticesFile); err == nil && bytes.Equal(old, text) {
			return nil
		}
		return os.WriteFile(noticesFile, text, 0o644)
	case len(args) == 2 && args[0] == "sbom":
		info, err := buildinfo.ReadFile(args[1])
		if err != nil {
			return err
		}
		text, err := sbom(info)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	return errors.New("usage: dependencies notices | dependencies sbom PROGRAM")
}
