package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	return names
}

func TestAListIsTheSameWrittenEitherWay(t *testing.T) {
	for _, n := range []int{0, 1, api.PackAbove, api.PackAbove + 1, 15000} {
		data, err := json.Marshal(struct {
			Names api.List[string] `json:"names"`
		}{numbered(n)})
		if err != nil {
			t.Fatal(err)
		}
		if plain := !strings.Contains(string(data), `"names":"`); plain != (n <= api.PackAbove) {
			t.Errorf("%d names are plain: %v", n, plain)
		}
		var back struct {
			Names api.List[string] `json:"names"`
		}
		if err := json.Unmarshal(data, &back); err != nil || !slices.Equal(back.Names, numbered(n)) {
			t.Errorf("%d names became %d: %v", n, len(back.Names), err)
		}
	}
	for _, wrong := range []string{`"no base64!"`, `"aGVsbG8="`, `{}`, `[1]`} {
		var names api.List[string]
		if json.Unmarshal([]byte(wrong), &names) == nil {
			t.Errorf("%s is a list of %v", wrong, names)
		}
	}
}
