// Package schemas has the JSON schemas of what the command line prints for programs, and of what workflows take as input.
package schemas

import "embed"

//go:embed *.json
var files embed.FS

// Of is the schema of an output.
func Of(name string) ([]byte, error) { return files.ReadFile(name + ".schema.json") }
