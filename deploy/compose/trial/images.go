package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// shipped are the images of Drydock's own, with the programs in each.
var shipped = map[string]int{"drydock": 2, "drydock-cli": 1}

// sizeOfProgram is what an image may have for each of its programs, in bytes.
const sizeOfProgram = 61_500_000

// image is what the engine says of an image.
type image struct {
	Architecture string
	Size         int64
	Config       struct {
		User   string
		Labels map[string]string
	}
}

// checkImages holds the images that are to be shipped to what is promised of them.
func checkImages(ctx context.Context, version string) error {
	for _, name := range slices.Sorted(maps.Keys(shipped)) {
		text, err := output(exec.CommandContext(ctx, "docker", "image", "inspect", name+":local"))
		if err != nil {
			return fmt.Errorf("%w\nmake images builds it", err)
		}
		var all []image
		if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
			return fmt.Errorf("docker image inspect %s: %d images (%w)", name, len(all), err)
		}
		if err := all[0].check(version, shipped[name]*sizeOfProgram); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		say("%s: %.1f MB, %s, user %s", name, float64(all[0].Size)/1e6, all[0].Architecture, all[0].Config.User)
	}
	return nil
}

func (i image) check(version string, maxSize int) error {
	if i.Size > int64(maxSize) {
		return fmt.Errorf("%d bytes: want %d at most", i.Size, maxSize)
	}
	user, _, _ := strings.Cut(i.Config.User, ":")
	if number, err := strconv.Atoi(user); err != nil || number == 0 {
		return fmt.Errorf("user %q: want a number that is not 0", i.Config.User)
	}
	for _, label := range []string{"version", "revision", "source", "licenses", "created", "title", "description"} {
		if i.Config.Labels["org.opencontainers.image."+label] == "" {
			return fmt.Errorf("it has no label org.opencontainers.image.%s", label)
		}
	}
	if got := i.Config.Labels["org.opencontainers.image.version"]; version != "" && got != version {
		return fmt.Errorf("its version is %s: want %s (make images)", got, version)
	}
	return nil
}
