// Package lease keeps work from running twice at once, by leases that are rows of a MySQL or MariaDB table.
package lease
