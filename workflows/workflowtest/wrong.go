package workflowtest

// WrongPayloads are payloads that no message takes.
var WrongPayloads = map[string]string{
	"a string":        `"ops"`,
	"an empty string": `""`,
	"an array":        `[{"by":"amy"}]`,
	"a number":        `7`,
	"a boolean":       `true`,
	"null":            `null`,
	"unknown field":   `{"by":"amy","nobody":"knows"}`,
	"another case":    `{"By":"amy"}`,
	"a null field":    `{"by":null}`,
	"wrong type":      `{"by":7}`,
	"twice":           `{"by":"amy","by":"bob"}`,
	"not JSON":        `{"by"`,
}
