module github.com/mailretention/mailretention

go 1.26.0

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/DATA-DOG/go-sqlmock v1.5.2 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
