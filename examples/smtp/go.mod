module github.com/mailretention/mailretention/examples/smtp

go 1.26.0

require (
	github.com/emersion/go-smtp v0.25.1
	github.com/go-sql-driver/mysql v1.10.1
	github.com/mailretention/mailretention v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/emersion/go-sasl v0.0.0-20241020182733-b788ff22d5a6 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/mailretention/mailretention => ../..
