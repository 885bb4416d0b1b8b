module drydock.dev/drydock/tools/site

go 1.26.0

require (
	drydock.dev/drydock v0.0.0
	github.com/yuin/goldmark v1.8.7
	golang.org/x/mod v0.43.0
)

replace drydock.dev/drydock => ../..
