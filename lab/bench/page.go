package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

const (
	// pageViewers look at the page at once. Each loads it again when something has changed, no sooner than pageRests after the last time, as the
	// page's script does.
	pageViewers = 50
	pageRests   = 5 * time.Second
	// pageLoads are timed, pageApart from each other, so that what was read last is old each time.
	pageLoads = 20
	pageApart = 3 * time.Second
)

// pageLoad is one load of the page.
type pageLoad struct {
	firstByte time.Duration
	bytes     int
}

// measurePage is what the page of a large cluster takes: from the request to the first byte, on the wire, and of the worker's memory while
// many look at it and nodes are maintained.
func (b *bench) measurePage(ctx context.Context) []Figure {
	nodes := b.sizes.memoryNodes
	world.Say("page: a cluster of %d nodes, which takes some minutes", nodes)
	b.enlarge(ctx, nodes, 0)
	ports := must(devstack.FreePorts(1))
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	worker := must(b.startWorker(ctx, "worker", fmt.Sprintf("page: {listen: %q}\nscheduler: {maxParallel: 10}\n", address)))
	defer func() { b.note(worker.Stop(time.Minute)) }()
	idle, _ := resident(worker)
	first := must(loadPage(ctx, address, true))
	plain := must(loadPage(ctx, address, false))
	var took []time.Duration
	for range pageLoads {
		noError(world.Sleep(ctx, pageApart))
		took = append(took, must(loadPage(ctx, address, true)).firstByte)
	}
	world.Say("page: %d look at it for %s while nodes are maintained", pageViewers, b.sizes.pageViewed)
	loads := b.viewPage(ctx, address)
	noError(photograph(ctx, address))
	now, peak := resident(worker)
	noError(distribution(fmt.Sprintf("Request to first byte of the page of %d nodes", nodes), took).draw("page"))
	return []Figure{
		atMost(fmt.Sprintf("page of %d nodes, request to first byte, median of %d", nodes, pageLoads), ms(median(took)), "ms", 200),
		report("- the first time", ms(first.firstByte), "ms"),
		atMost("- on the wire", float64(first.bytes)/1000, "KB", 500),
		report("- as it is", float64(plain.bytes)/1000, "KB"),
		report(fmt.Sprintf("loads by %d viewers in %s", pageViewers, b.sizes.pageViewed), float64(loads), "loads"),
		report("worker's resident memory before the page", idle, "MB"),
		report("- while they look", now, "MB"),
		report("- at most", peak, "MB"),
	}
}

// viewPage has viewers look at the page while a plan maintains nodes, and returns how often they have loaded it.
func (b *bench) viewPage(ctx context.Context, address string) (loads int) {
	noError(b.startPlan(ctx, "viewed", b.sizes.memoryNodes, 5, `,"maintenance":{"readyTimeout":"5s","onReadyTimeout":"release"}`))
	viewing, stop := context.WithTimeout(ctx, b.sizes.pageViewed)
	defer stop()
	var mu sync.Mutex
	all, viewing := errgroup.WithContext(viewing)
	for range pageViewers {
		all.Go(func() error {
			err := viewedBy(viewing, address, func() {
				mu.Lock()
				defer mu.Unlock()
				loads++
			})
			if viewing.Err() != nil {
				err = nil // the time is over
			}
			return err
		})
	}
	noError(errors.Join(all.Wait(), ctx.Err()))
	return loads
}

// viewedBy loads the page whenever its stream says that something has changed.
func viewedBy(ctx context.Context, address string, loaded func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/live", http.NoBody)
	if err != nil {
		return err
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	changes, rested := bufio.NewScanner(stream.Body), time.Time{}
	for changes.Scan() {
		if changes.Text() == "" || time.Now().Before(rested) {
			continue
		}
		rested = time.Now().Add(pageRests)
		if _, err := loadPage(ctx, address, true); err != nil {
			return err
		}
		loaded()
	}
	return changes.Err()
}

// loadPage loads the page, compressed or as it is.
func loadPage(ctx context.Context, address string, zipped bool) (load pageLoad, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return load, err
	}
	r.Header.Set("Accept-Encoding", map[bool]string{true: "gzip", false: "identity"}[zipped])
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return load, err
	}
	defer answer.Body.Close()
	body := bufio.NewReader(answer.Body)
	if _, err := body.Peek(1); err != nil {
		return load, err
	}
	load.firstByte = time.Since(began)
	size, err := io.Copy(io.Discard, body)
	load.bytes = int(size)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page answers %s", answer.Status)
	}
	return load, err
}

// photograph keeps pictures of the page in Chromium, where there is one: in light and dark colours, and on a phone.
func photograph(ctx context.Context, address string) error {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		world.Say("page: no pictures are made, since there is no chromium (make chromium)")
		return nil //nolint:nilerr // it is not needed to measure
	}
	for name, flags := range map[string][]string{
		"page-large":       {"--window-size=1200,1400"},
		"page-large-dark":  {"--window-size=1200,1400", "--blink-settings=preferredColorScheme=0"},
		"page-large-phone": {"--window-size=500,1400"},
	} {
		file, err := pictureFile(name + ".png")
		if err != nil {
			return err
		}
		profile, err := os.MkdirTemp("", "drydock-bench-browser-")
		if err != nil {
			return err
		}
		args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile, "--timeout=10000", "--screenshot=" + file}, flags...)
		out, err := exec.CommandContext(ctx, browser, append(args, "http://"+address+"/")...).CombinedOutput()
		if err = errors.Join(err, os.RemoveAll(profile)); err != nil {
			return fmt.Errorf("chromium: %w\n%s", err, out)
		}
	}
	return nil
}
