module drydock.dev/drydock/tools/site

go 1.26.0

require (
	drydock.dev/drydock v0.0.0
	github.com/yuin/goldmark v1.8.7
)

replace drydock.dev/drydock => ../..
