"""The tables of the ``flights`` domain in plain SQL; gold's specs define the same in YAML.

The SQL is valid in DuckDB and in Spark, except for ``QUALIFY``. Every measure is a count, an exact integer sum or
maximum, or one division of those, so it depends neither on the order of the rows nor on the engine.
"""

from __future__ import annotations

# The types of silver; an instant is UTC.
FLIGHT_EVENT_COLUMNS = {
    "flight_id": "VARCHAR", "op": "VARCHAR", "event": "VARCHAR", "event_at": "TIMESTAMPTZ", "event_seq": "INTEGER",
    "status": "VARCHAR", "flight_date": "DATE", "carrier": "VARCHAR", "flight_number": "INTEGER", "origin": "VARCHAR",
    "dest": "VARCHAR", "tailnum": "VARCHAR", "sched_dep_at": "TIMESTAMPTZ", "sched_arr_at": "TIMESTAMPTZ",
    "dep_at": "TIMESTAMPTZ", "arr_at": "TIMESTAMPTZ", "dep_delay_min": "INTEGER", "arr_delay_min": "INTEGER",
    "air_time_min": "INTEGER", "distance_miles": "INTEGER",
}  # fmt: skip
WEATHER_COLUMNS = {
    "origin": "VARCHAR", "year": "INTEGER", "month": "INTEGER", "day": "INTEGER", "hour": "INTEGER", "temp": "DOUBLE",
    "dewp": "DOUBLE", "humid": "DOUBLE", "wind_dir": "INTEGER", "wind_speed": "DOUBLE", "wind_gust": "DOUBLE",
    "precip": "DOUBLE", "pressure": "DOUBLE", "visib": "DOUBLE", "time_hour": "TIMESTAMPTZ",
}  # fmt: skip
PLANES_COLUMNS = {
    "tailnum": "VARCHAR", "year": "INTEGER", "type": "VARCHAR", "manufacturer": "VARCHAR", "model": "VARCHAR",
    "engines": "INTEGER", "seats": "INTEGER", "speed": "INTEGER", "engine": "VARCHAR",
}  # fmt: skip

BRONZE_COLUMNS = {
    "bronze.flight_events": FLIGHT_EVENT_COLUMNS,
    "bronze.weather": WEATHER_COLUMNS,
    "bronze.planes": PLANES_COLUMNS,
}

# One row per flight, as last reported. Copies of an event are equal, so either may be first.
SILVER_FLIGHTS = """
SELECT flight_id, event_at, event_seq, status, flight_date, carrier, flight_number, origin, dest, tailnum,
       sched_dep_at, sched_arr_at, dep_at, arr_at, dep_delay_min, arr_delay_min, air_time_min, distance_miles
FROM bronze.flight_events
QUALIFY ROW_NUMBER() OVER (PARTITION BY flight_id ORDER BY event_at DESC, event_seq DESC) = 1
"""

# One row per airport and hour; without year, month, day and hour, which repeat time_hour in local time.
SILVER_WEATHER = """
SELECT DISTINCT origin, time_hour, temp, dewp, humid, wind_dir, wind_speed, wind_gust, precip, pressure, visib
FROM bronze.weather
"""

# One row per plane: the register does not change in 2013, every snapshot is the same.
SILVER_PLANES = """
SELECT DISTINCT tailnum, year, type, manufacturer, model, engines, seats, speed, engine
FROM bronze.planes
"""

# delayed_15: arrived 15 minutes late or more, as the US Department of Transportation counts it.
ROUTE_PERFORMANCE_DAILY = """
SELECT flight_date, origin, dest,
       COUNT(*) AS flights,
       COUNT(dep_at) AS departed,
       COUNT(arr_at) AS arrived,
       COUNT(*) FILTER (WHERE status = 'cancelled') AS cancelled,
       COUNT(*) FILTER (WHERE arr_delay_min >= 15) AS delayed_15,
       100 * CAST(COUNT(*) FILTER (WHERE arr_delay_min >= 15) AS DOUBLE)
           / NULLIF(COUNT(arr_delay_min), 0) AS pct_delayed_15,
       AVG(dep_delay_min) AS avg_dep_delay_min,
       AVG(arr_delay_min) AS avg_arr_delay_min,
       MAX(arr_delay_min) AS max_arr_delay_min
FROM silver.flights
GROUP BY flight_date, origin, dest
"""

# The weather at the origin in the UTC hour of the scheduled departure. Visibility in miles, wind in miles per hour.
# 'unknown': there is no reading (yet), or the reading lacks the value.
DELAY_BY_WEATHER = """
SELECT f.flight_date AS flight_date,
       CASE WHEN w.visib < 2 THEN 'low' WHEN w.visib < 8 THEN 'mid' WHEN w.visib >= 8 THEN 'clear'
            ELSE 'unknown' END AS visibility_band,
       CASE WHEN w.wind_speed < 10 THEN 'light' WHEN w.wind_speed < 20 THEN 'moderate'
            WHEN w.wind_speed >= 20 THEN 'strong' ELSE 'unknown' END AS wind_band,
       COUNT(*) AS flights,
       COUNT(f.dep_at) AS departed,
       COUNT(*) FILTER (WHERE f.status = 'cancelled') AS cancelled,
       AVG(f.dep_delay_min) AS avg_dep_delay_min,
       MAX(f.dep_delay_min) AS max_dep_delay_min
FROM silver.flights AS f
LEFT JOIN silver.weather AS w ON w.origin = f.origin AND w.time_hour = DATE_TRUNC('hour', f.sched_dep_at)
GROUP BY 1, 2, 3
"""

DEFINITIONS = {
    "silver.flights": SILVER_FLIGHTS,
    "silver.weather": SILVER_WEATHER,
    "silver.planes": SILVER_PLANES,
    "gold.route_performance_daily": ROUTE_PERFORMANCE_DAILY,
    "gold.delay_by_weather": DELAY_BY_WEATHER,
}

# A few figures of each table for a person; all engines compute the same values.
CHECKSUMS = {
    "silver.flights": {
        "scheduled": "COUNT(*) FILTER (WHERE status = 'scheduled')",
        "departed": "COUNT(*) FILTER (WHERE status = 'departed')",
        "arrived": "COUNT(*) FILTER (WHERE status = 'arrived')",
        "cancelled": "COUNT(*) FILTER (WHERE status = 'cancelled')",
        "dep_delay_min": "SUM(dep_delay_min)::BIGINT",
        "arr_delay_min": "SUM(arr_delay_min)::BIGINT",
        "air_time_min": "SUM(air_time_min)::BIGINT",
        "distance_miles": "SUM(distance_miles)::BIGINT",
    },
    "silver.weather": {"visib_hundredths": "SUM(ROUND(visib * 100)::BIGINT)::BIGINT", "gusts": "COUNT(wind_gust)"},
    "silver.planes": {"seats": "SUM(seats)::BIGINT", "with_year": "COUNT(year)"},
    "gold.route_performance_daily": {
        name: f"SUM({name})::BIGINT" for name in ("flights", "departed", "arrived", "cancelled", "delayed_15")
    },
    "gold.delay_by_weather": {name: f"SUM({name})::BIGINT" for name in ("flights", "departed", "cancelled")},
}
